"""A batch record is many submissions, each decided alone."""

import json
from typing import Any

import msgspec
import pytest
from minutewheel.broker.command import Code, Decoded, Foreign, Rejection, Submit
from minutewheel.broker.limits import Limits
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.position import pack_position
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


def one(value: bytes | None, headers: Headers = (), decoder: Decoder = DECODER) -> Decoded:
    (decoded,) = decode(value, headers, decoder=decoder)
    return decoded


def code(decoded: Decoded) -> tuple[Code, str]:
    assert isinstance(decoded, Rejection), decoded
    return decoded.code, decoded.field


def items(*fields: dict[str, Any]) -> tuple[bytes, bytes]:
    return json.dumps(fields).encode(), msgspec.msgpack.encode(fields)


def test_a_batch_is_decided_item_by_item_in_order() -> None:
    shard = shard_of("default/0")
    mine = [f"{n}" for n in range(2_000) if shard_of(f"default/{n}") == shard][:2]
    elsewhere = next(f"{n}" for n in range(2_000) if shard_of(f"default/{n}") != shard)
    ids = [mine[0], "bad\n", elsewhere, mine[1]]
    fields = [{"id": name, "queue": "q", "delay_ms": 1} for name in ids]
    for value, headers in zip(items(*fields), (BATCH_JSON, BATCH_MSGPACK), strict=True):
        first, bad, foreign, last = decode(value, headers, shard=shard)
        assert isinstance(first, Submit)
        assert isinstance(last, Submit)
        assert isinstance(foreign, Foreign)
        assert isinstance(bad, Rejection)
        assert (first.key, foreign.key, last.key) == tuple(f"default/{n}" for n in (mine[0], elsewhere, mine[1]))
        assert code(bad) == (Code.BAD_ID, "id")
        assert bad.item is not None
        assert bad.item in value
        assert [it.at.position for it in (first, bad, foreign, last)] == [pack_position(1, 5, n) for n in range(4)]


def test_any_bad_item_spoils_only_itself() -> None:
    good = json.dumps(TASK).encode()
    for bad in (
        b"null",
        b"7",
        b"{}",
        b'{"id":"\xff"}',
        b'{"id":"a","id":"b"}',
        b'{"payload":' + b"[" * 90 + b"]" * 90 + b"}",
    ):
        decoded = decode(b"[" + good + b"," + bad + b"," + good + b"]", BATCH_JSON)
        assert [type(it) for it in decoded] == [Submit, Rejection, Submit]


def test_batches_as_a_whole() -> None:
    assert code(one(b"[]", BATCH_JSON)) == (Code.EMPTY, "")
    assert code(one(b"\x90", BATCH_MSGPACK)) == (Code.EMPTY, "")
    assert code(one(b"{}", BATCH_JSON)) == (Code.NOT_DECODABLE, "")
    assert code(one(b"[{}", BATCH_JSON)) == (Code.NOT_DECODABLE, "")
    assert code(one(None, BATCH_JSON)) == (Code.EMPTY, "")
    assert code(one(b"[" * 1_000_000, BATCH_JSON)) == (Code.TOO_DEEP, "")
    assert code(one(b"\xdd\xff\xff\xff\xff", BATCH_MSGPACK)) == (Code.NOT_DECODABLE, "")


def test_the_batch_limit_is_exact() -> None:
    decoder = Decoder(Limits(batch_items=3))
    item = b'{"queue":"q","delay_ms":1}'
    assert len(decode(b"[" + b",".join([item] * 3) + b"]", BATCH_JSON, decoder=decoder)) == 3
    assert code(one(b"[" + b",".join([item] * 4) + b"]", BATCH_JSON, decoder=decoder)) == (Code.BATCH_TOO_LARGE, "")
    assert code(one(b"[" + b",".join([b"0"] * 16_385) + b"]", BATCH_JSON)) == (Code.BATCH_TOO_LARGE, "")
    full = decode(b"[" + b",".join([b"0"] * 16_384) + b"]", BATCH_JSON)
    assert len({it.at.position for it in full}) == 16_384
