"""What the records of the three logs become."""

import json

import pytest
from minutewheel.broker.command import Cancel, Code, Rejection, Submit
from minutewheel.broker.outcome import Outcome, outcome_message
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.dispatcher.decoding import decoding
from minutewheel.dispatcher.intake import Item
from minutewheel.store.position import Log, filing_number, pack_position

pytestmark = pytest.mark.pure

TOPICS = Topics()
SHARD = shard_of("acme/1")
OTHER = next(f"{n}" for n in range(100) if shard_of(f"acme/{n}") != SHARD)
SAME = next(f"{n}" for n in range(2, 1_000) if shard_of(f"acme/{n}") == SHARD)
NOW_MS = 1_790_000_000_000
BATCH = (("content-type", b"application/vnd.minutewheel.batch+json"),)


def submission(task_id: str = "1", queue: str = "mail") -> dict[str, object]:
    return {"id": task_id, "tenant": "acme", "queue": queue, "delay_ms": 5}


def decode(
    log: Log, value: object, headers: tuple[tuple[str, bytes], ...] = (), key: bytes | None = None
) -> list[Item]:
    data = json.dumps(value).encode() if isinstance(value, dict | list) else value
    record = Record(TOPICS.logs[log], SHARD, 12, NOW_MS, key, data, headers)
    items = decoding(SHARD, Decoder(), TOPICS, {"mail"}.__contains__)(log, record, 3)
    assert all(item.record is record and item.time_ms == NOW_MS for item in items)
    return list(items)


def test_a_submission_becomes_an_item_that_knows_its_place_and_the_filing_it_causes() -> None:
    (item,) = decode(Log.SUBMIT, submission())
    assert isinstance(item.what, Submit)
    assert item.what.due_ms == NOW_MS + 5
    assert item.position == pack_position(3, 12)
    assert item.filing == filing_number(Log.SUBMIT, item.position)
    assert item.key == "acme/1"
    assert item.decides


def test_a_batch_record_becomes_an_item_each_some_refused_some_for_other_shards() -> None:
    items = decode(Log.SUBMIT, [submission(), {"id": ""}, submission(OTHER), submission(SAME, "mall")], BATCH)
    assert [item.position for item in items] == [pack_position(3, 12, index) for index in range(4)]
    submit, refused, foreign, undeclared = (item.what for item in items)
    assert isinstance(submit, Submit)
    assert isinstance(refused, Rejection)
    assert isinstance(foreign, Message)
    assert isinstance(undeclared, Rejection)
    assert [item.decides for item in items] == [True, False, False, False]


def test_a_queue_that_nobody_declared_is_refused_with_its_own_code() -> None:
    (item,) = decode(Log.SUBMIT, submission(queue="mall"))
    assert isinstance(item.what, Rejection)
    assert (item.what.code, item.what.field) == (Code.UNKNOWN_QUEUE, "queue")
    assert "mall" in item.what.message


def test_what_belongs_to_another_shard_becomes_the_message_that_takes_it_there() -> None:
    (item,) = decode(Log.SUBMIT, submission(OTHER))
    assert isinstance(item.what, Message)
    assert (item.what.topic, item.what.partition) == (TOPICS.forwarded, shard_of(f"acme/{OTHER}"))
    assert item.what.value == item.record.value
    again = Record(
        TOPICS.forwarded, item.what.partition or 0, 0, NOW_MS + 9, item.what.key, item.what.value, item.what.headers
    )
    shard = shard_of(f"acme/{OTHER}")
    (there,) = decoding(shard, Decoder(), TOPICS, {"mail"}.__contains__)(Log.FORWARDED, again, 1)
    assert isinstance(there.what, Submit)
    assert there.what.due_ms == NOW_MS + 5  # the delay counts from where it stood first
    assert there.filing == filing_number(Log.FORWARDED, pack_position(1, 0))


def test_a_queue_is_asked_about_only_where_the_task_belongs() -> None:
    asked: list[str] = []
    decoder = decoding(SHARD, Decoder(), TOPICS, lambda name: not asked.append(name))
    value = json.dumps([submission(OTHER, "theirs"), submission("1", "ours")]).encode()
    decoder(Log.SUBMIT, Record(TOPICS.submit, SHARD, 1, NOW_MS, None, value, BATCH), 1)
    assert asked == ["ours"]


def test_a_null_value_cancels() -> None:
    (item,) = decode(Log.SUBMIT, None, key=b"acme/1")
    assert isinstance(item.what, Cancel)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"", Code.EMPTY),
        (None, Code.EMPTY),
        (b"\xff\xfe", Code.NOT_DECODABLE),
        (b'{"id": "1', Code.NOT_DECODABLE),
        (b"[" * 5_000_000, Code.NOT_AN_OBJECT),
    ],
)
def test_case_43_what_cannot_be_decoded_is_one_refusal_with_its_reason(value: bytes | None, code: Code) -> None:
    (item,) = decode(Log.SUBMIT, value)
    assert isinstance(item.what, Rejection)
    assert item.what.code is code
    assert item.position == pack_position(3, 12)


def outcome(task_id: str) -> Outcome:
    key = f"acme/{task_id}"
    return Outcome(kind="done", key=key, shard=shard_of(key), minute=1, filing=7, origin=7)


def test_outcomes_of_this_shard_another_and_none() -> None:
    message = outcome_message(TOPICS, outcome("1"))
    (mine,) = decode(Log.OUTCOMES, message.value, message.headers)  # type: ignore[arg-type]
    assert mine.what == outcome("1")
    assert mine.decides
    message = outcome_message(TOPICS, outcome(OTHER))
    (theirs,) = decode(Log.OUTCOMES, message.value, message.headers)  # type: ignore[arg-type]
    assert isinstance(theirs.what, Message)
    assert theirs.what.partition == shard_of(f"acme/{OTHER}")
    (bad,) = decode(Log.OUTCOMES, b"\x00")
    assert isinstance(bad.what, Rejection)
    assert bad.filing == filing_number(Log.OUTCOMES, pack_position(3, 12))


def test_a_record_whose_place_fits_no_position_is_refused_not_raised() -> None:
    record = Record(TOPICS.submit, SHARD, 1 << 40, NOW_MS, None, json.dumps(submission()).encode())
    (item,) = decoding(SHARD, Decoder(), TOPICS, {"mail"}.__contains__)(Log.SUBMIT, record, 3)
    assert isinstance(item.what, Rejection)
    assert item.what.code is Code.NO_POSITION
