import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from minutewheel.broker.command import Rejection
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record
from minutewheel.console import contracts
from referencing import Registry, Resource

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[2] / "docs"
SCHEMAS = contracts.schemas()
REGISTRY: Any = Registry().with_resources([(s["$id"], Resource.from_contents(s)) for s in SCHEMAS.values()])


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY)


def refused(value: bytes) -> bool:
    record = Record("minutewheel.submit", 7, 5, 1_790_000_000_000, None, value, ())
    return isinstance(Decoder().decode(record, 7, 1)[0], Rejection)


@pytest.mark.parametrize("file", contracts.documents())
def test_the_documents_are_what_the_code_says(file: str) -> None:
    assert (DOCS / file).read_text() == contracts.documents()[file], (
        "write them anew: minutewheel config contracts docs"
    )


def test_they_are_written_where_it_is_asked(tmp_path: Path) -> None:
    written = contracts.write(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} == contracts.documents().keys()


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


def examples() -> list[Any]:
    text = (DOCS / "submitting.md").read_text(encoding="utf-8").split("## Rejection codes\n")[0]
    return [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def test_the_examples_of_the_docs_are_valid() -> None:
    found = examples()
    assert len(found) >= 5
    for example in found:
        validator("submission").validate(example)
    validator("batch").validate(found)


FIELDS: dict[str, Any] = {
    "version": st.sampled_from([1, 2, "1"]),
    "op": st.sampled_from(["submit", "cancel", "steal", 1]),
    "id": st.sampled_from(["a", "", 5]),
    "tenant": st.sampled_from(["acme", " ", None]),
    "queue": st.sampled_from(["mail", 1]),
    "due": st.sampled_from(["2026-12-01T09:00:00Z", "tomorrow", 1_790_000_000_000, 1.5]),
    "delay_ms": st.sampled_from([0, 1.0, "1"]),
    "payload": st.sampled_from([None, 1, "a", [1], {"a": 1}]),
    "headers": st.sampled_from([{}, {"a": "b"}, {"a": None}, {"a": 1}, []]),
    "priority": st.sampled_from([1, 3, 9, "1"]),
    "retry": st.sampled_from([{}, {"factor": 2}, {"factor": 2.5, "base_ms": 5}, {"other": 1}]),
    "on_conflict": st.sampled_from(["keep", "other"]),
    "receipt": st.sampled_from(["me", None]),
    "other": st.just(1),
}


@given(st.fixed_dictionaries({"id": FIELDS["id"]}, optional={k: v for k, v in FIELDS.items() if k != "id"}))
def test_what_the_decoder_takes_the_schema_takes(form: dict[str, Any]) -> None:
    if not refused(json.dumps(form).encode()):
        validator("submission").validate(form)


@pytest.mark.parametrize(
    "form",
    [{"other": 1}, {"op": "steal"}, {"id": 5}, {"due": 1.5}, {"headers": {"a": 1}}, {"on_conflict": "other"}],
)
def test_what_no_submission_is_both_refuse(form: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validator("submission").validate(form)
    assert refused(json.dumps({"id": "a", "queue": "mail", "delay_ms": 1, **form}).encode())


def test_each_reference_of_the_topics_leads_somewhere() -> None:
    document = contracts.asyncapi()
    text = json.dumps(document)
    for reference in set(re.findall(r'"\$ref": "([^"]+)"', text)):
        if reference.startswith("#/"):
            at: Any = document
            for step in reference[2:].split("/"):
                at = at[step]
        else:
            assert reference in contracts.documents()
    assert {channel["address"] for channel in document["channels"].values()} == {
        "minutewheel.submit",
        "minutewheel.outcomes",
        "minutewheel.receipts",
        "minutewheel.rejected",
        "minutewheel.dead",
        "minutewheel.due.{queue}",
    }
