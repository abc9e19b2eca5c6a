"""What the decoder makes of each form of record, alone, in batches and forwarded."""

import json
from typing import Any

import msgspec
import pytest
from minutewheel.broker.command import Cancel, Code, Decoded, Discard, Foreign, Redrive, Rejection, Reschedule, Submit
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.position import NO_POSITION, Log, pack_position
from minutewheel.store.record import Headers, Retry

pytestmark = pytest.mark.pure

TOPICS = Topics()
NOW_MS = 1_790_000_000_000
DUE_MS = 1_796_115_600_000
DECODER = Decoder()
BATCH_JSON = (("content-type", b"application/vnd.minutewheel.batch+json"),)
BATCH_MSGPACK = (("content-type", b"application/vnd.minutewheel.batch+msgpack"),)
MSGPACK = (("content-type", b"application/msgpack"),)
STRUCTURED = (("content-type", b"application/cloudevents+json; charset=UTF-8"),)
TASK: dict[str, Any] = {"id": "order-1234", "tenant": "acme", "queue": "mail", "due": "2026-12-01T09:00:00Z"}
KEY = "acme/order-1234"


def decode(
    value: bytes | None,
    headers: Headers = (),
    *,
    key: bytes | None = None,
    shard: int = shard_of(KEY),
    offset: int = 5,
    time_ms: int = NOW_MS,
    decoder: Decoder = DECODER,
) -> list[Decoded]:
    return decoder.decode(Record(TOPICS.submit, shard, offset, time_ms, key, value, headers), shard, 1)


def one(value: bytes | None, headers: Headers = (), **more: Any) -> Decoded:
    (decoded,) = decode(value, headers, **more)
    return decoded


def event(**ours: str) -> Headers:
    given = {"mw_due": "2026-12-01T09:00:00Z", "mw_queue": "mail", "mw_tenant": "acme", **ours}
    attributes = {"ce_specversion": "1.0", "ce_id": "order-1234", "ce_source": "/shop", "ce_type": "order"}
    return tuple((name, text.encode()) for name, text in {**attributes, **given}.items())


def submit(fields: dict[str, Any], **more: Any) -> Submit:
    decoded = one(json.dumps(fields).encode(), **more)
    assert isinstance(decoded, Submit), decoded
    return decoded


def code(decoded: Decoded) -> tuple[Code, str]:
    assert isinstance(decoded, Rejection), decoded
    return decoded.code, decoded.field


def test_plain_json_with_its_defaults() -> None:
    command = submit({**TASK, "payload": {"to": "a"}})
    assert command == Submit(
        at=command.at,
        key=KEY,
        digest=command.digest,
        queue="mail",
        due_ms=DUE_MS,
        payload=b'{"to": "a"}',
        headers=(),
        priority=2,
        max_attempts=5,
        retry=Retry(1_000, 2.0, 3_600_000),
        timeout_ms=0,
        expires_ms=0,
        on_conflict="reject",
        receipt=None,
    )
    assert (command.at.log, command.at.position) == (Log.SUBMIT, pack_position(1, 5))
    assert (command.at.time_ms, command.at.origin) == (NOW_MS, -1)


def test_every_field_of_plain_json_is_read() -> None:
    command = submit(
        {
            **TASK,
            "version": 1,
            "op": "submit",
            "payload": None,
            "headers": {"x-trace": "ü", "nothing": None},
            "priority": 1,
            "max_attempts": 9,
            "retry": {"base_ms": 5, "factor": 3, "cap_ms": 50},
            "timeout_ms": 60_000,
            "expires": DUE_MS + 1,
            "on_conflict": "replace",
            "receipt": "mark",
        }
    )
    assert command.payload == b"null"
    assert command.headers == (("x-trace", "ü".encode()), ("nothing", None))
    assert (command.priority, command.max_attempts, command.retry) == (1, 9, Retry(5, 3.0, 50))
    assert (command.timeout_ms, command.expires_ms) == (60_000, DUE_MS + 1)
    assert (command.on_conflict, command.receipt) == ("replace", "mark")


@pytest.mark.parametrize("payload", [b'{"a" :\t1.50, "b":"\\u00e9\xc3\xa9"}', b"[ ]", b"0.10", b'"text"', b"true"])
def test_a_json_payload_is_the_bytes_that_were_sent(payload: bytes) -> None:
    value = json.dumps(TASK).encode()[:-1] + b', "payload" : ' + payload + b" }"
    decoded = one(value)
    assert isinstance(decoded, Submit)
    assert decoded.payload == payload


def test_a_missing_payload_is_empty() -> None:
    assert submit(TASK).payload == b""


def test_msgpack_says_the_same_with_any_bytes() -> None:
    packed = one(msgspec.msgpack.encode({**TASK, "payload": b"\x00\xff", "headers": {"a": b"\xff", "b": "t"}}), MSGPACK)
    assert isinstance(packed, Submit)
    assert packed.payload == b"\x00\xff"
    assert packed.headers == (("a", b"\xff"), ("b", b"t"))
    assert code(one(msgspec.msgpack.encode({**TASK, "payload": {"a": 1}}), MSGPACK)) == (Code.BAD_VALUE, "payload")


def test_a_tenant_is_default_unless_named() -> None:
    fields = {"id": "x", "queue": "q", "delay_ms": 5}
    assert submit(fields, shard=shard_of("default/x")).key == "default/x"


def test_a_delay_counts_from_the_time_of_the_record() -> None:
    fields = {"id": "order-1234", "tenant": "acme", "queue": "mail", "delay_ms": 90}
    assert submit(fields).due_ms == NOW_MS + 90
    assert submit(fields, time_ms=NOW_MS + 7).due_ms == NOW_MS + 97


def test_a_task_without_an_id_is_named_by_its_first_position_and_so_in_every_replay() -> None:
    value = json.dumps({"queue": "mail", "delay_ms": 1}).encode()
    shard = shard_of("default/9-3-77-0")
    record = Record(TOPICS.submit, 9, 77, NOW_MS, b"any", value)
    first, again = DECODER.decode(record, 9, 3), DECODER.decode(record, 9, 3)
    assert first == again
    (foreign,) = first
    assert isinstance(foreign, Foreign)
    assert (foreign.key, foreign.shard) == ("default/9-3-77-0", shard)


def test_the_records_key_is_the_producers_own_business() -> None:
    for key in (b"acme/other", b"\xff", b""):
        assert submit(TASK, key=key).key == KEY


def test_headers_of_the_record_come_along_and_those_of_the_body_win() -> None:
    headers = (("traceparent", b"00-1"), ("a", b"record"), ("Content-Type", b"application/json"))
    decoded = one(json.dumps({**TASK, "headers": {"a": "body"}}).encode(), headers)
    assert isinstance(decoded, Submit)
    assert decoded.headers == (("traceparent", b"00-1"), ("a", b"body"))


def test_the_other_ops() -> None:
    def ask(op: str, **more: Any) -> Decoded:
        return one(json.dumps({"op": op, "id": "order-1234", "tenant": "acme", "receipt": "r", **more}).encode())

    at = submit(TASK).at
    assert ask("cancel") == Cancel(at=at, key=KEY, receipt="r")
    assert ask("discard") == Discard(at=at, key=KEY, receipt="r")
    assert ask("reschedule", delay_ms=4) == Reschedule(at=at, key=KEY, due_ms=NOW_MS + 4, receipt="r")
    assert ask("redrive", due=DUE_MS) == Redrive(at=at, key=KEY, due_ms=DUE_MS, receipt="r")
    assert ask("redrive") == Redrive(at=at, key=KEY, due_ms=NOW_MS, receipt="r")
    assert code(ask("reschedule")) == (Code.MISSING_FIELD, "due")
    assert code(ask("cancel", due=DUE_MS)) == (Code.UNKNOWN_FIELD, "due")
    assert code(ask("reschedule", due=DUE_MS, queue="q")) == (Code.UNKNOWN_FIELD, "queue")
    assert code(ask("discard", payload=1)) == (Code.UNKNOWN_FIELD, "payload")
    assert code(ask("explode")) == (Code.UNKNOWN_OP, "op")
    assert code(one(b'{"op":"cancel"}')) == (Code.MISSING_FIELD, "id")


def test_a_null_value_cancels_the_task_of_its_key() -> None:
    assert one(None, key=KEY.encode()) == Cancel(at=submit(TASK).at, key=KEY)
    assert code(one(None, key=b"no-tenant")) == (Code.BAD_ID, "id")
    assert code(one(None, key=b"acme/")) == (Code.BAD_ID, "id")
    assert code(one(None, key=b"a b/x")) == (Code.BAD_TENANT, "tenant")
    assert code(one(None, key=b"acme/\xff")) == (Code.BAD_ID, "id")
    assert code(one(None)) == (Code.EMPTY, "")
    assert code(one(None, key=b"")) == (Code.EMPTY, "")


def test_a_composed_name_is_taken_and_its_decomposed_twin_refused() -> None:
    """Case 62: two names that print alike are never two tasks."""
    key = "acme/Z\u00fcrich"
    assert submit({**TASK, "id": "Z\u00fcrich"}, shard=shard_of(key)).key == key
    assert code(one(json.dumps({**TASK, "id": "Zu\u0308rich"}).encode())) == (Code.BAD_ID, "id")


@pytest.mark.parametrize("form", ["json", "msgpack", "binary"])
def test_the_payload_limit_is_exact(form: str) -> None:
    """Case 41: limit - 1 and the limit pass, limit + 1 does not, at the door."""
    for size, good in ((65_535, True), (65_536, True), (65_537, False)):
        if form == "json":
            value = json.dumps({**TASK, "payload": "x" * (size - 2)}).encode()
            decoded = one(value)
        elif form == "msgpack":
            decoded = one(msgspec.msgpack.encode({**TASK, "payload": b"x" * size}), MSGPACK)
        else:
            decoded = one(b"x" * size, event())
        if good:
            assert isinstance(decoded, Submit)
            assert len(decoded.payload) == size
        else:
            assert code(decoded) == (Code.PAYLOAD_TOO_LARGE, "payload")


@pytest.mark.parametrize(("letter", "count"), [("x", 256), ("\u00e9", 128), ("\U0001f600", 64)])
def test_the_id_limit_is_in_bytes_and_exact(letter: str, count: int) -> None:
    good = letter * count
    assert submit({**TASK, "id": good}, shard=shard_of(f"acme/{good}")).key == f"acme/{good}"
    assert code(one(json.dumps({**TASK, "id": good + "x"}).encode())) == (Code.BAD_ID, "id")


def test_header_limits_are_exact() -> None:
    assert len(submit({**TASK, "headers": {"a": "x" * 8_191}}).headers) == 1
    too_large = {**TASK, "headers": {"a": "x" * 8_192}}
    assert code(one(json.dumps(too_large).encode())) == (Code.HEADERS_TOO_LARGE, "headers")
    value = json.dumps(TASK).encode()
    assert isinstance(one(value, tuple((f"h{n}", b"") for n in range(64))), Submit)
    assert code(one(value, tuple((f"h{n}", b"") for n in range(65)))) == (Code.HEADERS_TOO_LARGE, "headers")
    assert code(one(value, tuple(("h", b"x") for _ in range(10_000)))) == (Code.HEADERS_TOO_LARGE, "headers")
    assert code(one(value, (("h", b"x" * 65_536),))) == (Code.HEADERS_TOO_LARGE, "headers")


def test_nesting_limit_is_exact_and_brackets_in_strings_do_not_count() -> None:
    def nested(depth: int) -> bytes:
        return json.dumps(TASK).encode()[:-1] + b',"payload":' + b'{"a":[' * (depth // 2) + b"]}" * (depth // 2) + b"}"

    assert isinstance(one(nested(64)), Submit)
    assert code(one(nested(66))) == (Code.TOO_DEEP, "payload")
    assert submit({**TASK, "payload": '[{"' * 1000}).payload.startswith(b'"[{')
    assert submit({**TASK, "payload": [[], {}] * 1000}).payload.endswith(b"]")


def test_headers_of_ours_are_refused_on_plain_records() -> None:
    value = json.dumps(TASK).encode()
    assert code(one(value, (("mw_id", b"x"),))) == (Code.UNKNOWN_FIELD, "mw_id")
    assert code(one(value, (("mw_origin", b"0/0/0"),))) == (Code.UNKNOWN_FIELD, "mw_origin")
    assert code(one(None, (("mw_due", b"x"),), key=KEY.encode())) == (Code.UNKNOWN_FIELD, "mw_due")


def test_content_types() -> None:
    value = json.dumps(TASK).encode()
    for name in (b"application/json", b"Application/JSON; charset=utf-8", b'application/json;charset="UTF-8"'):
        assert isinstance(one(value, (("content-type", name),)), Submit)
    for name in (b"text/plain", b"", b"application/json; charset=utf-16", b"application/xml", b"\xff"):
        assert code(one(value, (("content-type", name),))) == (Code.UNKNOWN_CONTENT_TYPE, "content-type")
    for name in (b"application/x-msgpack", b"application/vnd.msgpack"):
        assert isinstance(one(msgspec.msgpack.encode(TASK), (("content-type", name),)), Submit)


def test_the_digest_is_of_the_content_alone() -> None:
    def digest(**changes: Any) -> bytes:
        return submit({**TASK, "payload": {"a": 1}, **changes}).digest

    plain = digest()
    assert len(plain) == 16
    spaced = b'\n{ "payload" :{"a": 1} ,' + json.dumps(TASK, indent=3).encode()[1:]
    same: list[Decoded] = [
        one(spaced),
        one(msgspec.msgpack.encode({**TASK, "payload": b'{"a": 1}'}), MSGPACK),
        one(json.dumps({**TASK, "payload": {"a": 1}}).encode(), (("traceparent", b"another"),)),
    ]
    assert [command.digest for command in same if isinstance(command, Submit)] == [plain] * 3
    assert digest(due=DUE_MS) == digest(due="2026-12-01T10:00:00+01:00") == plain
    assert digest(on_conflict="keep", receipt="other", priority=2) == plain
    others = [
        digest(queue="other"),
        digest(due=DUE_MS + 1),
        digest(priority=1),
        digest(max_attempts=6),
        digest(retry={"base_ms": 7}),
        digest(timeout_ms=1),
        digest(expires=DUE_MS + 5),
        digest(headers={"a": "1"}),
        digest(payload={"a": 2}),
    ]
    assert len({plain, *others}) == 10


def test_the_same_delay_sent_later_is_the_same_content() -> None:
    fields = {"id": "order-1234", "tenant": "acme", "queue": "mail", "delay_ms": 90}
    assert submit(fields).digest == submit(fields, time_ms=NOW_MS + 7).digest
    assert submit(fields).digest != submit({**TASK, "due": NOW_MS + 90}).digest


def test_a_position_that_does_not_fit_is_refused() -> None:
    decoded = one(json.dumps(TASK).encode(), offset=1 << 40)
    assert code(decoded) == (Code.NO_POSITION, "offset")
    assert isinstance(decoded, Rejection)
    assert decoded.at.position == NO_POSITION


def test_a_time_of_the_record_before_1970_only_matters_to_delays() -> None:
    assert submit(TASK, time_ms=-5).due_ms == DUE_MS
    assert code(one(b'{"queue":"q","delay_ms":1}', time_ms=-5)) == (Code.BAD_DUE, "delay_ms")
