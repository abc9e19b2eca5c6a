"""What is wrong with a submission is said by a code of the closed list and by the field at fault."""

from typing import Any

import msgspec
import pytest
from minutewheel.broker.command import Code, Decoded, Rejection
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.record import Headers

pytestmark = pytest.mark.pure

TOPICS = Topics()
NOW_MS = 1_790_000_000_000
DUE_MS = 1_796_115_600_000
DECODER = Decoder()
MSGPACK = (("content-type", b"application/msgpack"),)
TASK: dict[str, Any] = {"id": "order-1234", "tenant": "acme", "queue": "mail", "due": "2026-12-01T09:00:00Z"}
KEY = "acme/order-1234"
BATCH_JSON = (("content-type", b"application/vnd.minutewheel.batch+json"),)
BATCH_MSGPACK = (("content-type", b"application/vnd.minutewheel.batch+msgpack"),)
STRUCTURED = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)


def decode(
    value: bytes | None,
    headers: Headers = (),
    *,
    shard: int = shard_of(KEY),
    decoder: Decoder = DECODER,
) -> list[Decoded]:
    return decoder.decode(Record(TOPICS.submit, shard, 5, NOW_MS, None, value, headers), shard, 1)


def one(value: bytes | None, headers: Headers = ()) -> Decoded:
    (decoded,) = decode(value, headers)
    return decoded


def code(decoded: Decoded) -> tuple[Code, str]:
    assert isinstance(decoded, Rejection), decoded
    return decoded.code, decoded.field


REFUSED: list[tuple[bytes, Code, str]] = [
    (b"", Code.EMPTY, ""),
    (b" ", Code.NOT_DECODABLE, ""),
    (b"null", Code.NOT_AN_OBJECT, ""),
    (b"[]", Code.NOT_AN_OBJECT, ""),
    (b'"x"', Code.NOT_AN_OBJECT, ""),
    (b"\xef\xbb\xbf{}", Code.NOT_DECODABLE, ""),
    (b"{} x", Code.NOT_DECODABLE, ""),
    (b'{"id":"a"', Code.NOT_DECODABLE, ""),
    (b'{"id":"a\xff"}', Code.NOT_DECODABLE, ""),
    (b'{"id":"a","queue":"q","delay_ms":1,"payload":"\xff"}', Code.NOT_DECODABLE, ""),
    (b'{"id":"a","queue":"q","delay_ms":1,"payload":"\xed\xa0\x80"}', Code.NOT_DECODABLE, ""),
    (b'{"id":"\\ud800"}', Code.NOT_DECODABLE, ""),
    (b'{"id":"a","queue":"q","delay_ms":1,"payload":NaN}', Code.NOT_DECODABLE, ""),
    (b'{"id":"a","queue":"q","delay_ms":1,"payload":"\x00"}', Code.NOT_DECODABLE, ""),
    (b'{"id":"a","queue":"q","delay_ms":NaN}', Code.NOT_DECODABLE, ""),
    (b"[" * 5_000_000, Code.NOT_AN_OBJECT, ""),
    (b'{"payload":' + b"[" * 5_000_000, Code.TOO_DEEP, ""),
    (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", Code.TOO_DEEP, ""),
    (b'{"id":"a","id":"b","queue":"q","delay_ms":1}', Code.DUPLICATE_FIELD, "id"),
    (b'{"id":"a","\\u0069d":"a","queue":"q","delay_ms":1}', Code.DUPLICATE_FIELD, "id"),
    (b'{"payload":1,"queue":"q","delay_ms":1,"payload":"22"}', Code.DUPLICATE_FIELD, "payload"),
    (b'{"payload":"\\"","queue":"q","delay_ms":1,"payload":1}', Code.DUPLICATE_FIELD, "payload"),
    (b'{"queue":"q","delay_ms":1,"headers":{"a":"1","a":"2"}}', Code.DUPLICATE_FIELD, "headers"),
    (b'{"queue":"q","delay_ms":1,"retry":{"factor":2,"factor":3}}', Code.DUPLICATE_FIELD, "retry"),
    (b'{"queue":"q","delay_ms":1,"colour":1}', Code.UNKNOWN_FIELD, "colour"),
    (b'{"queue":"q","delay_ms":1,"specversion":"1.0"}', Code.UNKNOWN_FIELD, "specversion"),
    (b'{"queue":"q","delay_ms":1,"limits":[]}', Code.UNSUPPORTED, "limits"),
    (b'{"queue":"q","delay_ms":1,"after":[]}', Code.UNSUPPORTED, "after"),
    (b'{"queue":"q","delay_ms":1,"window_ms":1}', Code.UNSUPPORTED, "window_ms"),
    (b'{"queue":"q","delay_ms":1,"group":"g"}', Code.UNSUPPORTED, "group"),
    (b'{"version":2,"colour":1}', Code.UNKNOWN_VERSION, "version"),
    (b'{"version":"1","queue":"q","delay_ms":1}', Code.UNKNOWN_VERSION, "version"),
    (b'{"version":99,"queue":"q","delay_ms":1}', Code.UNKNOWN_VERSION, "version"),
    (b'{"op":7}', Code.UNKNOWN_OP, "op"),
    (b"{}", Code.MISSING_FIELD, "queue"),
    (b'{"queue":"q"}', Code.MISSING_FIELD, "due"),
    (b'{"queue":"q","due":1796115600000,"delay_ms":1}', Code.DUE_AND_DELAY, "delay_ms"),
    (b'{"queue":"q","due":1.0}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":1e3}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":1e400}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":true}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":null}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":"Infinity"}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":"2026-12-01T09:00:00"}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":-1}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":9007199254740993}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":9223372036854775808}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":100000000000000000000000000}', Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":1' + b"0" * 6000 + b"}", Code.BAD_DUE, "due"),
    (b'{"queue":"q","due":1767225600}', Code.DUE_IN_SECONDS, "due"),
    (b'{"queue":"q","delay_ms":-1}', Code.BAD_DUE, "delay_ms"),
    (b'{"queue":"q","delay_ms":253402300799999}', Code.BAD_DUE, "delay_ms"),
    (b'{"queue":"q","delay_ms":1e999}', Code.BAD_DUE, "delay_ms"),
    (b'{"queue":"q","delay_ms":1,"priority":0}', Code.BAD_VALUE, "priority"),
    (b'{"queue":"q","delay_ms":1,"priority":4}', Code.BAD_VALUE, "priority"),
    (b'{"queue":"q","delay_ms":1,"priority":true}', Code.BAD_VALUE, "priority"),
    (b'{"queue":"q","delay_ms":1,"priority":"1"}', Code.BAD_VALUE, "priority"),
    (b'{"queue":"q","delay_ms":1,"max_attempts":0}', Code.BAD_VALUE, "max_attempts"),
    (b'{"queue":"q","delay_ms":1,"max_attempts":101}', Code.BAD_VALUE, "max_attempts"),
    (b'{"queue":"q","delay_ms":1,"timeout_ms":-1}', Code.BAD_VALUE, "timeout_ms"),
    (b'{"queue":"q","delay_ms":1,"timeout_ms":1' + b"0" * 30 + b"}", Code.BAD_VALUE, "timeout_ms"),
    (b'{"queue":"q","delay_ms":1,"retry":{"base_ms":0}}', Code.BAD_VALUE, "retry"),
    (b'{"queue":"q","delay_ms":1,"retry":{"base_ms":9,"cap_ms":8}}', Code.BAD_VALUE, "retry"),
    (b'{"queue":"q","delay_ms":1,"retry":{"factor":0.5}}', Code.BAD_VALUE, "retry"),
    (b'{"queue":"q","delay_ms":1,"retry":{"factor":1e300}}', Code.BAD_VALUE, "retry"),
    (b'{"queue":"q","delay_ms":1,"retry":{"jitter":1}}', Code.BAD_VALUE, "retry"),
    (b'{"queue":"q","delay_ms":1,"expires":1767225600}', Code.DUE_IN_SECONDS, "expires"),
    (b'{"queue":"q","due":1796115600000,"expires":1796115599999}', Code.BAD_VALUE, "expires"),
    (b'{"queue":"q","delay_ms":1,"on_conflict":"merge"}', Code.BAD_VALUE, "on_conflict"),
    (b'{"queue":"q","delay_ms":1,"receipt":"a\\nb"}', Code.BAD_VALUE, "receipt"),
    (b'{"queue":"q","delay_ms":1,"receipt":null}', Code.BAD_VALUE, "receipt"),
    (b'{"queue":"q","delay_ms":1,"headers":{"mw_id":"x"}}', Code.BAD_VALUE, "headers"),
    (b'{"queue":"q","delay_ms":1,"headers":{"a":1}}', Code.BAD_VALUE, "headers"),
    (b'{"queue":"q","delay_ms":1,"headers":{"":"1"}}', Code.BAD_VALUE, "headers"),
    (b'{"queue":"q","delay_ms":1,"headers":{"a\\n":"1"}}', Code.BAD_VALUE, "headers"),
    (b'{"queue":"q\\n","delay_ms":1}', Code.BAD_QUEUE, "queue"),
    (b'{"queue":"","delay_ms":1}', Code.BAD_QUEUE, "queue"),
    (b'{"queue":"a/b","delay_ms":1}', Code.BAD_QUEUE, "queue"),
    (b'{"queue":"' + b"q" * 65 + b'","delay_ms":1}', Code.BAD_QUEUE, "queue"),
    (b'{"queue":5,"delay_ms":1}', Code.BAD_QUEUE, "queue"),
    (b'{"queue":"q","delay_ms":1,"tenant":"a\\n"}', Code.BAD_TENANT, "tenant"),
    (b'{"queue":"q","delay_ms":1,"tenant":""}', Code.BAD_TENANT, "tenant"),
    ('{"queue":"q","delay_ms":1,"tenant":"Z\u00fcrich"}'.encode(), Code.BAD_TENANT, "tenant"),
    ('{"queue":"q","delay_ms":1,"tenant":"\uff11"}'.encode(), Code.BAD_TENANT, "tenant"),
    (b'{"queue":"q","delay_ms":1,"id":""}', Code.BAD_ID, "id"),
    (b'{"queue":"q","delay_ms":1,"id":"a\\n"}', Code.BAD_ID, "id"),
    (b'{"queue":"q","delay_ms":1,"id":"a\\u0000"}', Code.BAD_ID, "id"),
    (b'{"queue":"q","delay_ms":1,"id":"\xc2\x85"}', Code.BAD_ID, "id"),
    (b'{"queue":"q","delay_ms":1,"id":"\\u2028"}', Code.BAD_ID, "id"),
    ('{"queue":"q","delay_ms":1,"id":"Zu\u0308rich"}'.encode(), Code.BAD_ID, "id"),
    (b'{"queue":"q","delay_ms":1,"id":5}', Code.BAD_ID, "id"),
]


@pytest.mark.parametrize(("value", "expected", "field"), REFUSED, ids=lambda part: repr(part)[:40])
def test_what_is_wrong_with_plain_json_is_said_by_code_and_field(value: bytes, expected: Code, field: str) -> None:
    assert code(one(value)) == (expected, field)


PACKED_REFUSED: list[tuple[bytes, Code, str]] = [
    (b"", Code.EMPTY, ""),
    (b"\xc0", Code.NOT_AN_OBJECT, ""),
    (b"\x81\xa2id", Code.NOT_DECODABLE, ""),
    (b"\xdf\xff\xff\xff\xff", Code.NOT_DECODABLE, ""),
    (b"\x81\x01\x02", Code.NOT_AN_OBJECT, ""),
    (msgspec.msgpack.encode({**TASK, "colour": 1}), Code.UNKNOWN_FIELD, "colour"),
    (msgspec.msgpack.encode({**TASK, "limits": 1}), Code.UNSUPPORTED, "limits"),
    (b"\x83\xa2id\xa1a\xa2id\xa1a\xa5queue\xa1q", Code.DUPLICATE_FIELD, ""),
    (b"\xde\x00\x02\xa5queue\xa1q\xa5queue\xa1q", Code.DUPLICATE_FIELD, ""),
    (msgspec.msgpack.encode({**TASK, "retry": {"factor": float("nan")}}), Code.BAD_VALUE, "retry"),
    (msgspec.msgpack.encode({**TASK, "retry": {"factor": float("inf")}}), Code.BAD_VALUE, "retry"),
    (msgspec.msgpack.encode({**TASK, "due": 2**63}), Code.BAD_DUE, "due"),
    (msgspec.msgpack.encode({**TASK, "headers": {"a": [1]}}), Code.BAD_VALUE, "headers"),
    (b"\x81\xa7headers\x81\xa1a" + b"\x91" * 100_000, Code.TOO_DEEP, ""),
]


@pytest.mark.parametrize(("value", "expected", "field"), PACKED_REFUSED, ids=lambda part: repr(part)[:40])
def test_what_is_wrong_with_msgpack_is_said_by_code_and_field(value: bytes, expected: Code, field: str) -> None:
    assert code(one(value, MSGPACK)) == (expected, field)
