"""Whatever bytes and headers a record has: the decoder answers, with results that hold their promises."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minutewheel.broker.command import Code, Decoded, Foreign, Rejection, Submit
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.rejection import rejection_message
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.record import Headers

pytestmark = pytest.mark.pure

TOPICS = Topics()
DECODER = Decoder()
TYPES = [
    b"application/json",
    b"application/msgpack",
    b"application/cloudevents+json",
    b"application/vnd.minutewheel.batch+json",
    b"application/vnd.minutewheel.batch+msgpack",
    b"text/plain; charset=x",
]
HEADER_NAMES = st.sampled_from(
    [
        *("content-type", "ce_specversion", "ce_id", "ce_source", "ce_type", "ce_mwqueue", "mw_due", "mw_due_ms"),
        *("mw_op", "mw_delay_ms", "mw_queue", "mw_tenant", "mw_origin", "mw_retry_factor", "mw_receipt", "x", ""),
    ]
)
HEADER_VALUES = st.one_of(
    st.none(),
    st.sampled_from([b"1.0", b"1796115600000", b"2026-12-01T09:00:00Z", b"mail", b"5", b"3/4/5", b"cancel", *TYPES]),
    st.binary(max_size=20),
)
HEADERS = st.lists(st.tuples(st.one_of(HEADER_NAMES, st.text(max_size=5)), HEADER_VALUES), max_size=8).map(tuple)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["2026-12-01T09:00:00Z", "submit", "cancel", "keep", "a", 1_796_115_600_000, 5]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
FIELDS = [
    *("version", "op", "id", "tenant", "queue", "due", "delay_ms", "payload", "headers", "priority", "max_attempts"),
    *("retry", "timeout_ms", "expires", "on_conflict", "receipt", "limits", "after", "window_ms", "group", "other"),
    *("specversion", "source", "type", "data", "data_base64", "datacontenttype", "mwqueue", "mwdue", "mwdelayms"),
]
GOOD: dict[str, Any] = {"id": "a", "queue": "q", "due": 1_796_115_600_000}
EVENT: dict[str, Any] = {"specversion": "1.0", "id": "a", "source": "s", "type": "t", "mwqueue": "q", "mwdelayms": 5}


def check(record: Record, shard: int) -> list[Decoded]:
    decoded = DECODER.decode(record, shard, 1)
    assert decoded
    assert decoded == DECODER.decode(record, shard, 1), "the same record gives the same results"
    for item in decoded:
        if isinstance(item, Rejection):
            assert item.code in Code
            message = rejection_message(TOPICS, record, item)
            assert dict(message.headers)["mw_code"] == item.code.encode()
        elif isinstance(item, Foreign):
            assert item.shard == shard_of(item.key) != shard
        else:
            assert shard_of(item.key) == shard
            assert len(item.key.encode()) <= 321
        if isinstance(item, Submit):
            assert 0 <= item.due_ms <= 253_402_300_799_999
            assert len(item.payload) <= 65_536
            assert item.expires_ms == 0 or item.due_ms <= item.expires_ms <= 253_402_300_799_999
            assert not any(name.startswith("mw_") for name, _ in item.headers)
    return decoded


@given(
    st.one_of(st.none(), st.binary(max_size=200)), HEADERS, st.one_of(st.none(), st.binary(max_size=30)), st.booleans()
)
@settings(max_examples=200, deadline=None)
def test_any_bytes(value: bytes | None, headers: Headers, key: bytes | None, forwarded: bool) -> None:
    topic = TOPICS.forwarded if forwarded else TOPICS.submit
    check(Record(topic, 3, 5, 1_790_000_000_000, key, value, headers), 3)


@given(
    st.sampled_from([GOOD, EVENT]),
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4),
    st.sets(st.sampled_from(FIELDS), max_size=2),
    st.sampled_from(TYPES),
    HEADERS,
)
@settings(max_examples=200, deadline=None)
def test_nearly_good_fields(
    base: dict[str, Any], changes: dict[str, Any], gone: set[str], content_type: bytes, headers: Headers
) -> None:
    fields: Any = {name: value for name, value in {**base, **changes}.items() if name not in gone}
    if b"batch" in content_type:
        fields = [fields, base]
    value = msgspec.msgpack.encode(fields) if b"msgpack" in content_type else json.dumps(fields).encode()
    check(Record(TOPICS.submit, 3, 5, 1_790_000_000_000, None, value, (("content-type", content_type), *headers)), 3)


@given(
    st.data(), st.sampled_from([GOOD, EVENT, {**GOOD, "payload": {"a": [1, {"b": "\u00e9"}]}, "headers": {"h": "v"}}])
)
@settings(max_examples=200, deadline=None)
def test_damaged_records(data: st.DataObject, fields: dict[str, Any]) -> None:
    content_type = data.draw(st.sampled_from(TYPES))
    whole: Any = [fields, fields] if b"batch" in content_type else fields
    value = bytearray(msgspec.msgpack.encode(whole) if b"msgpack" in content_type else json.dumps(whole).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(value)))
        match data.draw(st.sampled_from(["flip", "cut", "insert", "repeat"])):
            case "flip" if at < len(value):
                value[at] = data.draw(st.integers(0, 255))
            case "cut":
                del value[at:]
            case "insert":
                value[at:at] = data.draw(st.binary(max_size=4))
            case _:
                value[at:at] = value[max(0, at - 8) : at]
    record = Record(TOPICS.submit, 3, 5, 1_790_000_000_000, None, bytes(value), (("content-type", content_type),))
    check(record, 3)


@pytest.mark.parametrize(
    "unit", [b"[", b'{"a":', b'"', b"\xdd\xff", b"\x91", b"\x81\xa1a", b"0", b"\xff", b",", b"[[],"]
)
@pytest.mark.parametrize("content_type", TYPES)
def test_a_megabyte_of_anything(unit: bytes, content_type: bytes) -> None:
    value = unit * (1_000_000 // len(unit))
    (decoded,) = check(Record(TOPICS.submit, 3, 5, 0, None, value, (("content-type", content_type),)), 3)
    assert isinstance(decoded, Rejection)
    message = rejection_message(TOPICS, Record(TOPICS.submit, 3, 5, 0, None, value), decoded)
    assert message.value is not None
    assert len(message.value) == 131_072
    assert ("mw_cut", str(len(value)).encode()) in message.headers


def test_a_bad_record_does_not_disturb_the_records_around_it() -> None:
    """Case 43, on the decoder's side: both good tasks are read, each bad record is answered once."""
    good = Record(TOPICS.submit, shard_of("default/a"), 1, 0, None, json.dumps(GOOD).encode())
    bad = {
        b"": Code.EMPTY,
        None: Code.EMPTY,
        b'{"id":"\xff"}': Code.NOT_DECODABLE,
        b'{"id":"a","que': Code.NOT_DECODABLE,
        b'{"version":7,"id":"a"}': Code.UNKNOWN_VERSION,
        b"[" * 5_000_000: Code.NOT_AN_OBJECT,
        b'{"payload":' + b"[" * 5_000_000: Code.TOO_DEEP,
    }
    for value, expected in bad.items():
        record = msgspec.structs.replace(good, value=value, offset=2)
        seen = [check(it, good.partition) for it in (good, record, msgspec.structs.replace(good, offset=3))]
        assert isinstance(seen[0][0], Submit)
        assert isinstance(seen[2][0], Submit)
        (rejection,) = seen[1]
        assert isinstance(rejection, Rejection)
        assert rejection.code is expected
