"""docs/submitting.md says what the decoder does: each of its examples is run, each code has its place."""

import json
import re
from pathlib import Path

import pytest
from minutewheel.broker.command import Code, Decoded, Rejection
from minutewheel.broker.limits import Limits
from minutewheel.broker.partitioner import murmur2, shard_of
from minutewheel.broker.plain import JsonForm
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record

pytestmark = pytest.mark.pure

TEXT = (Path(__file__).parents[2] / "docs" / "submitting.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GOOD_PART, CODES_PART = TEXT.split("## Rejection codes\n")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", CODES_PART, re.MULTILINE | re.DOTALL))
SAID_BY_THE_DISPATCHER = {"unknown_queue", "unknown_filing"}


def expanded(text: str) -> str:
    return re.sub(r"⟨(.+?)\*(\d+)⟩", lambda match: match[1] * int(match[2]), text)


def record_of(kind: str, body: str) -> Record:
    """The record that a block shows."""
    head, value = ("", body) if kind == "json" else body.split("\n\n", 1)
    places: dict[str, str] = {}
    headers: list[tuple[str, bytes | None]] = []
    for line in head.splitlines():
        name, _, text = expanded(line).partition(": ")
        if name.startswith("<"):
            places[name] = text
        else:
            headers.append((name, text.encode()))
    return Record(
        places.get("<topic>", "minutewheel.submit"),
        int(places.get("<partition>", "7")),
        int(places.get("<offset>", "5")),
        1_790_000_000_000,
        places["<key>"].encode() if "<key>" in places else None,
        value_of(value.strip()),
        tuple(headers),
    )


def value_of(text: str) -> bytes | None:
    if text == "(null)":
        return None
    return bytes.fromhex(text[4:]) if text.startswith("hex ") else expanded(text).encode()


def run(kind: str, body: str) -> list[Decoded]:
    record = record_of(kind, body)
    return Decoder().decode(record, record.partition, 1)


@pytest.mark.parametrize(("kind", "body"), [it for it in BLOCK.findall(GOOD_PART) if it[0] in ("json", "record")])
def test_good_examples_are_accepted(kind: str, body: str) -> None:
    assert not [decoded for decoded in run(kind, body) if isinstance(decoded, Rejection)]


def test_python_examples_run() -> None:
    blocks = [body for kind, body in BLOCK.findall(TEXT) if kind == "python"]
    assert blocks
    for body in blocks:
        exec(compile(body, "docs/submitting.md", "exec"), {})


def test_the_list_of_codes_is_closed() -> None:
    assert list(SECTIONS) == [code.value for code in Code]


@pytest.mark.parametrize("code", [code for code in SECTIONS if code not in SAID_BY_THE_DISPATCHER])
def test_each_code_has_an_example_that_is_refused_with_it(code: str) -> None:
    blocks = [block for block in BLOCK.findall(SECTIONS[code]) if block[0] in ("json", "record")]
    assert blocks
    for kind, body in blocks:
        (decoded,) = run(kind, body)
        assert isinstance(decoded, Rejection)
        assert decoded.code == code


def test_every_field_is_in_the_table() -> None:
    table = re.findall(r"^\| `(\w+)` \|", GOOD_PART.split("## Fields")[1].split("## Other ops")[0], re.MULTILINE)
    assert sorted(table) == sorted(JsonForm.__struct_fields__)


def test_every_attribute_of_events_is_listed() -> None:
    named = set(re.findall(r"`mw([a-z]+)`", GOOD_PART))
    fields = {field.replace("_", "") for field in JsonForm.__struct_fields__} - {"id", "payload", "headers", "retry"}
    assert named == fields | {"duems", "expiresms", "retrybasems", "retryfactor", "retrycapms"}


def test_the_limits_are_the_defaults() -> None:
    limits = Limits()
    for number in (limits.payload_bytes, limits.header_bytes, limits.batch_items):
        assert f"{number:,}" in GOOD_PART


def test_the_vectors_that_are_shown_are_right() -> None:
    rows = re.findall(r"^\| (\(empty\)|`.+?`) \| (\d+) \| (\d+) \|$", GOOD_PART, re.MULTILINE)
    assert len(rows) >= 5
    for key, hashed, shard in rows:
        data = b"" if key == "(empty)" else key.strip("`").encode()
        assert (murmur2(data), shard_of(data)) == (int(hashed), int(shard))


def test_the_published_file_is_the_one_that_is_linked() -> None:
    assert "(partition-vectors.json)" in GOOD_PART
    vectors = json.loads((Path(__file__).parents[2] / "docs" / "partition-vectors.json").read_text(encoding="utf-8"))
    assert {"key", "utf8", "murmur2", "shard"} == set(vectors[0])
