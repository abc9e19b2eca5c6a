"""docs/outcomes.md says what the outcome decoder takes: its examples are run, its fields are all there are."""

import re
from pathlib import Path

import pytest
from minutewheel.broker.due import due_message
from minutewheel.broker.outcome import Outcome, Reported, decode_outcome
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.record import Filed, Options, encode_options, pack

pytestmark = pytest.mark.pure

TEXT = (Path(__file__).parents[2] / "docs" / "outcomes.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
SHARD = shard_of("acme/order-1234")


def read(example: str) -> Outcome:
    reported = decode_outcome(Record("minutewheel.outcomes", SHARD, 9, 1, None, example.encode()), SHARD, 1, Topics())
    assert isinstance(reported, Reported), reported
    return reported.outcome


def test_the_examples_are_outcomes() -> None:
    done, again, final = map(read, EXAMPLES)
    assert (done.kind, done.filing) == ("done", 18014398509563904)
    assert (again.kind, again.retryable, again.due_at) == ("failed", True, ("minutewheel.due.mail", 4, 88))
    assert (final.retryable, final.payload, final.headers) == (
        False,
        b'{"order": 1234}',
        (("content-type", b"application/json"),),
    )


def test_every_field_is_explained() -> None:
    table = TEXT.split("## The outcome")[1]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == set(Outcome.__struct_fields__)


def test_every_header_of_a_due_record_is_explained() -> None:
    options = encode_options(Options(receipt="r"))
    filed = Filed(1, 18014398509563904, 1, 1, 9, "acme/order-1234", "mail", options, b"\x90", b"")
    message = due_message(Topics(), SHARD, 29935260, 1796115600000, 18014398509563904, pack(filed))
    table = TEXT.split("## The outcome")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == {name for name, _ in message.headers}
    for _, value in message.headers[2:8]:
        assert value is not None
        assert f"`{value.decode()}`" in table
