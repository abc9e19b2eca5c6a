"""Receipts travel whole, in a JSON that rounds no number."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import InvalidTask, Standing
from minutewheel.broker.receipt import Answer, Op, Receipt, decode_receipt, receipt_message
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.position import Log

pytestmark = pytest.mark.pure

TOPICS = Topics()
OPS: list[Op] = ["submit", "cancel", "reschedule", "redrive", "discard", "outcome"]
STANDINGS = st.builds(
    Standing, st.sampled_from(Log), st.integers(-1, 2**61 - 1), st.integers(0, 2**47), st.integers(-1, 2**67 - 1)
)
RECEIPTS = st.builds(
    Receipt,
    op=st.sampled_from(OPS),
    key=st.text(st.characters(exclude_categories=["Cs"])),
    answer=st.sampled_from(Answer),
    receipt=st.text(st.characters(exclude_categories=["Cs"])),
    at=STANDINGS,
    state=st.sampled_from(["", "done"]),
    filing=st.integers(-1, 2**63 - 1),
    due_ms=st.integers(-1, 2**47),
    attempt=st.integers(0, 99),
    note=st.text(st.characters(exclude_categories=["Cs"])),
)


@given(RECEIPTS)
def test_what_is_sent_is_read(receipt: Receipt) -> None:
    message = receipt_message(TOPICS, 5, receipt)
    assert (message.topic, message.key, message.partition) == (TOPICS.receipts, receipt.key.encode(), 5)
    assert message.value is not None
    numbers = [value for value in json.loads(message.value).values() if isinstance(value, int)]
    assert all(number < 2**53 for number in numbers)
    assert decode_receipt(Record(message.topic, 5, 1, 2, message.key, message.value)) == receipt


@pytest.mark.parametrize("value", [None, b"", b"{}", b"[]", b"\xff", b"[" * 99_999])
def test_other_records_are_none(value: bytes | None) -> None:
    with pytest.raises(InvalidTask):
        decode_receipt(Record(TOPICS.receipts, 5, 1, 2, None, value))


@pytest.mark.parametrize("changes", [{"position": "x"}, {"filing": ""}, {"log": 7}, {"answer": "maybe"}])
def test_nor_are_nearly_good_ones(changes: dict[str, object]) -> None:
    good = Receipt(op="submit", key="a/b", answer=Answer.ACCEPTED, receipt="r", at=Standing(Log.SUBMIT, 1, 2))
    fields = {**json.loads(receipt_message(TOPICS, 5, good).value or b""), **changes}
    with pytest.raises(InvalidTask):
        decode_receipt(Record(TOPICS.receipts, 5, 1, 2, None, json.dumps(fields).encode()))
