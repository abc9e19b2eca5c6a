"""A command of another shard is forwarded, and is there the command that it would have been here."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import Code, Decoded, Foreign, Rejection
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder, forwarded_message
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.position import Log, pack_position
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


def code(decoded: Decoded) -> tuple[Code, str]:
    assert isinstance(decoded, Rejection), decoded
    return decoded.code, decoded.field


def forward(foreign: Foreign, *, partition: int | None = None, offset: int = 99, time_ms: int = NOW_MS + 50) -> Decoded:
    """The foreign command as its own shard's owner reads it."""
    message = forwarded_message(TOPICS, foreign)
    assert message.partition == foreign.shard
    at = foreign.shard if partition is None else partition
    record = Record(message.topic, at, offset, time_ms, message.key, message.value, message.headers)
    (decoded,) = DECODER.decode(record, at, 2)
    return decoded


NAMES = st.sampled_from(["a", "order-7", "Z\u00fcrich", "a/b", "x" * 256])


@st.composite
def records(draw: st.DrawFn) -> tuple[bytes | None, bytes | None, Headers, int]:
    """A good record of any form: key, value, headers and the number of its items."""
    fields: dict[str, Any] = {"queue": "q", **draw(st.sampled_from([{"due": DUE_MS}, {"delay_ms": 77}]))}
    fields |= draw(st.fixed_dictionaries({}, optional={"id": NAMES, "tenant": st.just("t"), "receipt": st.just("r")}))
    op = draw(st.sampled_from(["submit", "cancel", "reschedule"]))
    if op != "submit" and "id" in fields:
        del fields["queue"]
        fields["op"] = op
        if op == "cancel":
            fields = {name: value for name, value in fields.items() if name not in ("due", "delay_ms")}
    match draw(st.sampled_from(["json", "msgpack", "structured", "binary", "null", "batch+json", "batch+msgpack"])):
        case "json":
            return None, json.dumps(fields).encode(), (("x", b"1"),), 1
        case "msgpack":
            return b"other", msgspec.msgpack.encode(fields), MSGPACK, 1
        case "structured":
            ours = {f"mw{name.replace('_', '')}": value for name, value in fields.items() if name not in ("id", "due")}
            if "due" in fields:
                ours["mwduems"] = fields["due"]
            attributes = {"specversion": "1.0", "id": fields.get("id", "e"), "source": "/s", "type": "t"}
            return None, json.dumps({**attributes, **ours}).encode(), STRUCTURED, 1
        case "binary":
            payload = draw(st.one_of(st.none(), st.binary())) if fields.get("op", "submit") == "submit" else None
            ours = {f"mw_{name}": str(value) for name, value in fields.items() if name not in ("id", "due")}
            if "due" in fields:
                ours["mw_due_ms"] = str(fields["due"])
            attributes = {"ce_specversion": "1.0", "ce_id": fields.get("id", "e"), "ce_source": "/s", "ce_type": "t"}
            headers = tuple((name, text.encode()) for name, text in {**attributes, **ours, "other": "o"}.items())
            return None, payload, headers, 1
        case "null":
            return f"t/{fields.get('id', 'e')}".encode(), None, (("other", b"o"),), 1
        case batch:
            count = draw(st.integers(1, 4))
            many = [{**fields, **({"id": f"{fields['id'][:200]}{n}"} if "id" in fields else {})} for n in range(count)]
            packed = batch == "batch+msgpack"
            value = msgspec.msgpack.encode(many) if packed else json.dumps(many).encode()
            return None, value, BATCH_MSGPACK if packed else BATCH_JSON, count


@given(records(), st.integers(0, 63))
def test_a_forwarded_command_is_the_command(
    record: tuple[bytes | None, bytes | None, Headers, int], wrong: int
) -> None:
    """The same as read in its own shard, but for where it stands; whatever the form."""
    key, value, headers, count = record
    read = Record(TOPICS.submit, wrong, 5, NOW_MS, key, value, headers)
    decoded = DECODER.decode(read, wrong, 1)
    assert len(decoded) == count
    for index, item in enumerate(decoded):
        assert not isinstance(item, Rejection), item
        command = forward(item) if isinstance(item, Foreign) else item
        target = item.shard if isinstance(item, Foreign) else wrong
        assert not isinstance(command, Foreign | Rejection), command
        local = DECODER.decode(read, target, 1)[index]
        assert not isinstance(local, Foreign | Rejection)
        assert msgspec.structs.replace(command, at=local.at) == local
        if isinstance(item, Foreign):
            position = pack_position(1, 5, index)
            assert (command.at.log, command.at.position) == (Log.FORWARDED, pack_position(2, 99))
            assert (command.at.time_ms, command.at.origin) == (NOW_MS, wrong << 61 | position)


def foreign_task() -> Foreign:
    (decoded,) = DECODER.decode(
        Record(TOPICS.submit, (shard_of(KEY) + 1) % 64, 5, NOW_MS, None, json.dumps(TASK).encode()),
        (shard_of(KEY) + 1) % 64,
        1,
    )
    assert isinstance(decoded, Foreign)
    return decoded


def test_a_forwarded_command_of_another_shard_is_rejected() -> None:
    foreign = foreign_task()
    assert code(forward(foreign, partition=(foreign.shard + 1) % 64)) == (Code.WRONG_SHARD, "")


def test_forwarded_records_that_no_dispatcher_wrote() -> None:
    foreign = foreign_task()

    def changed(**changes: Any) -> tuple[Code, str]:
        return code(forward(msgspec.structs.replace(foreign, **changes)))

    assert changed(headers=()) == (Code.MISSING_FIELD, "mw_origin")
    assert changed(headers=foreign.headers * 2) == (Code.MISSING_FIELD, "mw_origin")
    assert changed(headers=(("mw_origin", None),)) == (Code.MISSING_FIELD, "mw_origin")
    assert changed(headers=(("mw_origin", b"1/2/3\n"),)) == (Code.MISSING_FIELD, "mw_origin")
    assert changed(headers=(("mw_origin", b"64/2/3"),)) == (Code.BAD_VALUE, "mw_origin")
    assert changed(headers=(("mw_origin", b"1/2305843009213693952/3"),)) == (Code.BAD_VALUE, "mw_origin")
    assert changed(key="acme/other") == (Code.KEY_MISMATCH, "")
    assert changed(value=b"[]", headers=(*BATCH_JSON, *foreign.headers)) == (Code.UNKNOWN_CONTENT_TYPE, "content-type")
