"""What goes to `rejected`: enough to see what was wrong and to send it again, and never too large."""

import pytest
from minutewheel.broker.command import Code, Rejection, Standing
from minutewheel.broker.rejection import rejection_message
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.position import Log, pack_position

pytestmark = pytest.mark.pure

TOPICS = Topics()


def test_the_record_as_it_came_and_where_it_stood() -> None:
    record = Record(TOPICS.submit, 7, 99, 5, b"key", b"[1,2]", (("a", b"\xff"), ("mw_code", b"forged")))
    at = Standing(Log.SUBMIT, pack_position(1, 99, 1), 5)
    message = rejection_message(TOPICS, record, Rejection(at, Code.BAD_ID, "no \ud800", "id", b"2"))
    assert (message.topic, message.partition, message.key, message.value) == (TOPICS.rejected, 7, b"key", b"2")
    assert message.headers == (
        ("a", b"\xff"),
        ("mw_code", b"bad_id"),
        ("mw_message", b"no ?"),
        ("mw_field", b"id"),
        ("mw_topic", b"minutewheel.submit"),
        ("mw_partition", b"7"),
        ("mw_offset", b"99"),
        ("mw_index", b"1"),
    )


def test_everything_is_bounded() -> None:
    headers = tuple((f"h{n}", b"x" * 1_000) for n in range(10_000))
    record = Record(TOPICS.due("mail"), 200, 1 << 50, 5, b"k" * 9_000, b"v" * 999_999, headers)
    at = Standing(Log.OUTCOMES, -1, 5)
    message = rejection_message(TOPICS, record, Rejection(at, Code.NO_POSITION, "m" * 9_999))
    assert message.value is not None
    assert message.key is not None
    size = len(message.value) + len(message.key) + sum(len(n) + len(v or b"") for n, v in message.headers)
    assert size < 200_000
    assert message.partition == 200 % 64
    assert dict(message.headers)["mw_cut"] == b"999999"
    assert dict(message.headers)["mw_index"] == b"0"


def test_no_value_stays_none() -> None:
    at = Standing(Log.SUBMIT, 0, 5)
    message = rejection_message(TOPICS, Record(TOPICS.submit, 0, 0, 0, None, None), Rejection(at, Code.EMPTY, "x"))
    assert message.key is None
    assert message.value is None
