"""Outcomes: a complete cause, from our workers and from others."""

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minutewheel.broker.command import Code, Rejection
from minutewheel.broker.due import due_message, parse_due
from minutewheel.broker.outcome import (
    REASON_BYTES,
    Outcome,
    Reported,
    WrongShard,
    cut,
    decode_outcome,
    outcome_message,
    outcome_of,
    outcome_of_filing,
)
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.store.position import Log, pack_position
from minutewheel.store.record import Filed, Headers, Options, encode_headers, encode_options, pack
from msgspec.structs import replace

pytestmark = pytest.mark.pure

TOPICS = Topics()
KEY = "acme/order-1234"
SHARD = shard_of(KEY)
OPTIONS = Options(max_attempts=9, starts=2, receipt="r")
OWN: Headers = (("content-type", b"image/png"), ("a", None))
FILED = Filed(7, 55, 3, 1, 1_900_000_000_000, KEY, "mail", encode_options(OPTIONS), encode_headers(OWN), b"\x00\xff")
DUE = due_message(TOPICS, SHARD, 29_935_260, 1_796_115_600_000, 66, pack(FILED))
DELIVERED = parse_due(Record(DUE.topic, 4, 88, 1, DUE.key, DUE.value, DUE.headers))
MSGPACK: Headers = (("content-type", b"application/msgpack"),)
MINIMAL: dict[str, Any] = {"kind": "done", "key": KEY, "shard": SHARD, "minute": 1, "filing": 66, "origin": 55}


def record_of(message: Message, *, partition: int = SHARD) -> Record:
    return Record(TOPICS.outcomes, partition, 9, 1_000, message.key, message.value, message.headers)


def decode(value: bytes | None, headers: Headers = (), **more: Any) -> Reported | Rejection | WrongShard:
    return decode_outcome(Record(TOPICS.outcomes, SHARD, 9, 1_000, None, value, headers), SHARD, 1, TOPICS, **more)


def code(fields: dict[str, Any]) -> tuple[Code, str]:
    both = [decode(json.dumps(fields).encode()), decode(msgspec.msgpack.encode(fields), MSGPACK)]
    assert isinstance(both[0], Rejection)
    assert isinstance(both[1], Rejection)
    assert (both[0].code, both[0].field) == (both[1].code, both[1].field)
    return both[0].code, both[0].field


def test_a_failure_carries_the_delivered_record_back() -> None:
    outcome = outcome_of(DELIVERED, "failed", starts=3, reason="boom", retryable=False, delay_ms=5)
    message = outcome_message(TOPICS, outcome)
    assert (message.topic, message.key, message.partition) == (TOPICS.outcomes, KEY.encode(), SHARD)
    reported = decode_outcome(record_of(message), SHARD, 1, TOPICS)
    assert isinstance(reported, Reported)
    assert reported.outcome == outcome
    assert (reported.at.log, reported.at.position, reported.at.time_ms) == (Log.OUTCOMES, pack_position(1, 9), 1_000)
    assert (outcome.payload, outcome.headers, outcome.task, outcome.queue) == (b"\x00\xff", OWN, OPTIONS, "mail")
    assert (outcome.attempt, outcome.priority, outcome.expires_ms) == (3, 1, 1_900_000_000_000)
    assert (outcome.filing, outcome.origin, outcome.minute, outcome.due_ms) == (66, 55, 29_935_260, 1_796_115_600_000)


def test_what_is_done_carries_no_more_than_its_receipt_needs() -> None:
    outcome = outcome_of(DELIVERED, "done", starts=1)
    assert (outcome.payload, outcome.headers, outcome.task.receipt) == (None, (), "r")
    assert isinstance(decode_outcome(record_of(outcome_message(TOPICS, outcome)), SHARD, 1, TOPICS), Reported)


def test_what_the_firing_path_decides_has_the_same_form() -> None:
    due_ms = 1_796_115_600_000
    outcome = outcome_of_filing("unpublishable", SHARD, 29_935_260, due_ms, 66, pack(FILED), "too_large")
    as_worker = outcome_of(DELIVERED, "unpublishable", starts=2, reason="too_large", retryable=False)
    assert outcome == as_worker
    assert isinstance(decode_outcome(record_of(outcome_message(TOPICS, outcome)), SHARD, 1, TOPICS), Reported)


def test_a_task_at_the_limits_still_fits_when_it_comes_back() -> None:
    """Case 41: the growth of what is added never makes an accepted task too large."""
    headers: Headers = tuple((f"h{n:02}", b"x" * 125) for n in range(64))
    filed = replace(FILED, payload=b"x" * 65_536, headers=encode_headers(headers))
    for _ in range(100):
        message = due_message(TOPICS, SHARD, 1, 1, 1, pack(filed))
        delivered = parse_due(Record(message.topic, 1, 2, 3, message.key, message.value, message.headers))
        back = outcome_message(TOPICS, outcome_of(delivered, "failed", starts=1, reason="r" * 100_000))
        reported = decode_outcome(record_of(back), SHARD, 1, TOPICS)
        assert isinstance(reported, Reported)
        assert back.value is not None
        assert len(back.value) < 100_000
        outcome = reported.outcome
        assert outcome.payload is not None
        filed = replace(
            filed, headers=encode_headers(outcome.headers), payload=outcome.payload, attempt=filed.attempt + 1
        )
    assert filed.payload == b"x" * 65_536
    assert filed.headers == encode_headers(headers)


def test_a_foreign_worker_may_answer_in_json_with_texts_for_numbers() -> None:
    headers = {name: (value or b"").decode() for name, value in DUE.headers if name not in ("mw_task", "content-type")}
    fields = {
        "kind": "failed",
        "key": f"{headers['mw_tenant']}/{headers['mw_id']}",
        "shard": headers["mw_shard"],
        "minute": headers["mw_minute"],
        "filing": headers["mw_filing"],
        "origin": headers["mw_idempotency_key"].rpartition(":")[2],
        "starts": 3,
        "reason": "boom",
        "due_at": [DUE.topic, 4, 88],
    }
    reported = decode(json.dumps(fields).encode())
    assert isinstance(reported, Reported)
    assert (reported.outcome.filing, reported.outcome.origin, reported.outcome.due_at) == (66, 55, (DUE.topic, 4, 88))
    carried = {**fields, "queue": "mail", "payload": base64.b64encode(b"\x00\xff").decode()}
    reported = decode(json.dumps(carried).encode(), (("content-type", b"application/json"),))
    assert isinstance(reported, Reported)
    assert reported.outcome.payload == b"\x00\xff"


def test_an_outcome_in_the_wrong_partition_goes_to_the_right_one_unchanged() -> None:
    message = outcome_message(TOPICS, outcome_of(DELIVERED, "done", starts=1))
    stray = record_of(message, partition=(SHARD + 1) % 64)
    wrong = decode_outcome(stray, (SHARD + 1) % 64, 1, TOPICS)
    assert isinstance(wrong, WrongShard)
    assert (wrong.shard, wrong.message) == (SHARD, message)


def test_refusals() -> None:
    assert isinstance(decode(json.dumps(MINIMAL).encode()), Reported)
    assert code({**MINIMAL, "shard": (SHARD + 1) % 64}) == (Code.WRONG_SHARD, "shard")
    assert code({**MINIMAL, "shard": 64}) == (Code.BAD_VALUE, "shard")
    assert code({**MINIMAL, "key": "no-tenant"}) == (Code.BAD_ID, "key")
    assert code({**MINIMAL, "key": "acme/"}) == (Code.BAD_ID, "key")
    assert code({**MINIMAL, "key": "acme/" + "x" * 2_000}) == (Code.BAD_ID, "key")
    assert code({**MINIMAL, "kind": "failed"}) == (Code.MISSING_FIELD, "payload")
    assert code({**MINIMAL, "kind": "failed", "due_at": ["minutewheel.submit", 1, 2]}) == (Code.BAD_VALUE, "due_at")
    assert code({**MINIMAL, "kind": "failed", "due_at": [DUE.topic, -1, 2]}) == (Code.BAD_VALUE, "due_at")
    assert code({**MINIMAL, "delay_ms": -1}) == (Code.BAD_VALUE, "delay_ms")
    assert code({**MINIMAL, "kind": "paused"}) == (Code.BAD_VALUE, "")
    assert code({**MINIMAL, "colour": 1}) == (Code.BAD_VALUE, "")
    assert code({"kind": "done"}) == (Code.BAD_VALUE, "")
    for name, value in (("filing", 2**63), ("filing", -1), ("starts", -1), ("attempt", 0), ("priority", 4)):
        assert code({**MINIMAL, name: value}) == (Code.BAD_VALUE, name)
    for data, expected in (
        (b"", Code.EMPTY),
        (None, Code.EMPTY),
        (b"{", Code.NOT_DECODABLE),
        (b"\xff", Code.NOT_DECODABLE),
    ):
        refused = decode(data)
        assert isinstance(refused, Rejection)
        assert refused.code is expected
    refused = decode(b"{}", (("content-type", b"text/plain"),))
    assert isinstance(refused, Rejection)
    assert refused.code is Code.UNKNOWN_CONTENT_TYPE


@pytest.mark.parametrize(
    "options",
    [
        b"\xc1",
        b"\x90",
        msgspec.msgpack.encode({"m": 0}),
        msgspec.msgpack.encode({"m": 1 << 16}),
        msgspec.msgpack.encode({"s": -1}),
        msgspec.msgpack.encode({"t": -1}),
        msgspec.msgpack.encode({"r": {"base_ms": 0}}),
        msgspec.msgpack.encode({"r": {"factor": float("nan")}}),
        msgspec.msgpack.encode({"r": {"factor": float("inf")}}),
        msgspec.msgpack.encode({"c": "x" * 70_000}),
    ],
)
def test_options_that_no_task_can_have_are_refused(options: bytes) -> None:
    refused = decode(msgspec.msgpack.encode({**MINIMAL, "options": options}), MSGPACK)
    assert isinstance(refused, Rejection)
    assert (refused.code, refused.field) == (Code.BAD_VALUE, "options")


def test_headers_and_queues_that_no_record_can_have_are_refused() -> None:
    carried = {**MINIMAL, "kind": "failed", "queue": "mail", "payload": b""}
    large = {**carried, "headers": [["a", b"x" * 66_000]]}
    for fields, expected in ((large, Code.HEADERS_TOO_LARGE), ({**carried, "queue": "a b"}, Code.BAD_QUEUE)):
        refused = decode(msgspec.msgpack.encode(fields), MSGPACK)
        assert isinstance(refused, Rejection)
        assert refused.code is expected


@given(st.text(max_size=40).map(lambda text: text * 150))
def test_a_reason_is_cut_to_whole_characters(reason: str) -> None:
    short = cut(reason)
    assert len(short.encode()) <= REASON_BYTES
    assert reason.encode(errors="replace").decode().startswith(short)


def test_a_reason_that_is_no_text_still_travels() -> None:
    message = outcome_message(TOPICS, outcome_of(DELIVERED, "failed", starts=1, reason="bad \ud800"))
    reported = decode_outcome(record_of(message), SHARD, 1, TOPICS)
    assert isinstance(reported, Reported)
    assert reported.outcome.reason == "bad ?"


def test_a_position_that_does_not_fit_is_refused() -> None:
    refused = decode_outcome(Record(TOPICS.outcomes, SHARD, 1 << 40, 0, None, b"{}"), SHARD, 1, TOPICS)
    assert isinstance(refused, Rejection)
    assert refused.code is Code.NO_POSITION


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.text(max_size=9), st.binary(max_size=9)
)


@given(
    st.dictionaries(st.sampled_from(Outcome.__struct_fields__), st.one_of(SCALARS, st.lists(SCALARS, max_size=3))),
    st.binary(max_size=30),
    st.sampled_from(["fields", "bytes", "cut"]),
)
@settings(max_examples=200, deadline=None)
def test_anything_is_an_outcome_or_refused(changes: dict[str, Any], junk: bytes, form: str) -> None:
    packed = msgspec.msgpack.encode({**MINIMAL, **changes})
    value = {"fields": packed, "bytes": junk, "cut": packed[: len(junk)]}[form]
    assert isinstance(decode(value, MSGPACK), Reported | Rejection | WrongShard)
    assert isinstance(decode(junk), Reported | Rejection | WrongShard)
