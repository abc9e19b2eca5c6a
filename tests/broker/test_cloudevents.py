"""CloudEvents 1.0 as submissions, in both content modes."""

import json
from typing import Any

import pytest
from minutewheel.broker.command import Cancel, Code, Decoded, Foreign, Rejection, Submit
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Record
from minutewheel.store.record import Headers, Retry

pytestmark = pytest.mark.pure

KEY = "acme/order-1234"
DUE_MS = 1_796_115_600_000
ATTRIBUTES = {"specversion": "1.0", "id": "order-1234", "source": "/shop", "type": "com.acme.order"}
OURS = {"due": "2026-12-01T09:00:00Z", "queue": "mail", "tenant": "acme"}


def decode(value: bytes | None, headers: Headers) -> Decoded:
    shard = shard_of(KEY)
    (decoded,) = Decoder().decode(
        Record("minutewheel.submit", shard, 5, 1_790_000_000_000, None, value, headers), shard, 1
    )
    return decoded


def binary(value: bytes | None, changes: dict[str, str | None] | None = None, more: Headers = ()) -> Decoded:
    fields: dict[str, str | None] = {f"ce_{name}": text for name, text in ATTRIBUTES.items()}
    fields |= {f"mw_{name}": text for name, text in OURS.items()}
    fields |= changes or {}
    headers = tuple((name, text.encode()) for name, text in fields.items() if text is not None)
    return decode(value, headers + more)


def structured(changes: dict[str, Any] | None = None, more: Headers = ()) -> Decoded:
    event: dict[str, Any] = {**ATTRIBUTES, **{f"mw{name}": text for name, text in OURS.items()}, **(changes or {})}
    return decode(json.dumps(event).encode(), (("content-type", b"application/cloudevents+json"), *more))


def good(decoded: Decoded) -> Submit:
    assert isinstance(decoded, Submit), decoded
    return decoded


def code(decoded: Decoded) -> tuple[Code, str]:
    assert isinstance(decoded, Rejection), decoded
    return decoded.code, decoded.field


def test_binary_mode_leaves_the_payload_and_the_attributes_untouched() -> None:
    command = good(binary(b"\x00\xff", more=(("content-type", b"image/png"), ("traceparent", b"00-1"))))
    assert (command.key, command.queue, command.due_ms, command.payload) == (KEY, "mail", DUE_MS, b"\x00\xff")
    assert dict(command.headers) == {
        "ce_specversion": b"1.0",
        "ce_id": b"order-1234",
        "ce_source": b"/shop",
        "ce_type": b"com.acme.order",
        "content-type": b"image/png",
        "traceparent": b"00-1",
    }


def test_structured_mode_becomes_the_same_in_binary_mode() -> None:
    one = good(structured({"data": {"a": 1}, "datacontenttype": "application/json", "subject": "s", "n": 5, "b": True}))
    assert one.payload == b'{"a": 1}'
    two = good(
        binary(
            b'{"a": 1}',
            {"ce_subject": "s", "ce_n": "5", "ce_b": "true"},
            (("content-type", b"application/json"),),
        )
    )
    assert dict(one.headers) == dict(two.headers)
    assert one.digest == two.digest


def test_every_option_has_an_attribute_and_a_header() -> None:
    values = {
        "priority": "1",
        "max_attempts": "9",
        "retry_base_ms": "5",
        "retry_factor": "1.5",
        "retry_cap_ms": "50",
        "timeout_ms": "6",
        "expires_ms": str(DUE_MS + 1),
        "on_conflict": "keep",
        "receipt": "mark",
        "version": "1",
        "op": "submit",
    }
    one = good(binary(b"", {f"mw_{name}": text for name, text in values.items()}))
    two = good(binary(b"", {f"ce_mw{name.replace('_', '')}": text for name, text in values.items()}))
    three = good(structured({f"mw{name.replace('_', '')}": text for name, text in values.items()}))
    for command in (one, two, three):
        assert (command.priority, command.max_attempts, command.retry) == (1, 9, Retry(5, 1.5, 50))
        assert (command.timeout_ms, command.expires_ms) == (6, DUE_MS + 1)
        assert (command.on_conflict, command.receipt) == ("keep", "mark")
        assert not any("mw" in name for name, _ in command.headers)


def test_times() -> None:
    for changes in ({"mw_due": None, "mw_due_ms": str(DUE_MS)}, {"mw_due": None, "mw_delay_ms": "6115600000"}):
        assert good(binary(b"", changes)).due_ms == DUE_MS
    assert good(structured({"mwdue": None, "mwduems": DUE_MS})).due_ms == DUE_MS
    assert code(binary(b"", {"mw_due_ms": "1"})) == (Code.DUPLICATE_FIELD, "mw_due_ms")
    assert code(binary(b"", {"mw_delay_ms": "1"})) == (Code.DUE_AND_DELAY, "delay_ms")
    assert code(binary(b"", {"mw_due": "2026-12-01T09:00:00"})) == (Code.BAD_DUE, "due")
    for text in ("\uff11\uff12", "1e3", "1_0", " 1", "", "9" * 30, "+1", "1\n"):
        assert code(binary(b"", {"mw_due": None, "mw_due_ms": text})) == (Code.BAD_DUE, "mw_due_ms")
    assert code(binary(b"", {"mw_due": None})) == (Code.MISSING_FIELD, "due")


def test_a_binary_event_without_data_is_a_task_without_payload() -> None:
    assert good(binary(None)).payload == b""


def test_an_event_may_cancel() -> None:
    cancelled = binary(None, {"mw_op": "cancel", "mw_due": None, "mw_queue": None})
    assert isinstance(cancelled, Cancel)
    assert cancelled.key == KEY
    assert code(binary(b"x", {"mw_op": "cancel", "mw_due": None, "mw_queue": None})) == (Code.UNKNOWN_FIELD, "payload")


def test_data_in_its_spellings() -> None:
    assert good(structured({"data_base64": "AP8="})).payload == b"\x00\xff"
    assert good(structured({"data": "text", "datacontenttype": "text/plain"})).payload == b"text"
    assert good(structured({"data": "text"})).payload == b'"text"'
    assert good(structured({"data": "text", "datacontenttype": "application/x+json; a=b"})).payload == b'"text"'
    assert good(structured({"data": None})).payload == b"null"
    assert code(structured({"data": 1, "data_base64": "AP8="})) == (Code.BAD_VALUE, "data_base64")
    assert code(structured({"data_base64": "?"})) == (Code.BAD_VALUE, "data_base64")
    assert code(structured({"data_base64": 5})) == (Code.BAD_VALUE, "data_base64")


@pytest.mark.parametrize("name", ["specversion", "id", "source", "type"])
def test_required_attributes(name: str) -> None:
    assert code(structured({name: None})) == (Code.MISSING_FIELD, name)
    assert code(structured({name: ""})) == (Code.MISSING_FIELD, name)
    if name != "specversion":
        assert code(binary(b"", {f"ce_{name}": None})) == (Code.MISSING_FIELD, name)


def test_refusals() -> None:
    assert code(binary(b"", {"ce_specversion": "0.3"})) == (Code.UNKNOWN_VERSION, "specversion")
    assert code(structured({"specversion": "2.0"})) == (Code.UNKNOWN_VERSION, "specversion")
    assert code(binary(b"", {"mw_colour": "red"})) == (Code.UNKNOWN_FIELD, "mw_colour")
    assert code(binary(b"", {"mw_limits": "x"})) == (Code.UNSUPPORTED, "mw_limits")
    assert code(structured({"mwwindowms": 5})) == (Code.UNSUPPORTED, "mwwindowms")
    assert code(structured({"mw_queue": "q"})) == (Code.DUPLICATE_FIELD, "mw_queue")
    assert code(structured({"my_name": "q"})) == (Code.BAD_VALUE, "my_name")
    assert code(structured({"extra": {"a": 1}})) == (Code.BAD_VALUE, "extra")
    assert code(structured({"extra": 1.5})) == (Code.BAD_VALUE, "extra")
    assert code(structured(more=(("mw_due", b"x"),))) == (Code.UNKNOWN_FIELD, "mw_due")
    assert code(binary(b"", {"mw_retry_factor": "x"})) == (Code.BAD_VALUE, "mw_retry_factor")
    assert code(binary(b"", {"mw_retry_factor": "nan"})) == (Code.BAD_VALUE, "retry")
    assert code(binary(b"", {"mw_priority": "one"})) == (Code.BAD_VALUE, "mw_priority")
    assert code(binary(b"", more=(("mw_queue", b"other"),))) == (Code.DUPLICATE_FIELD, "mw_queue")
    assert code(binary(b"", more=(("ce_id", b"other"),))) == (Code.DUPLICATE_FIELD, "id")
    assert code(binary(b"", {"mw_queue": None}, (("mw_queue", b"\xff"),))) == (Code.NOT_DECODABLE, "mw_queue")
    assert code(binary(b"", {"ce_id": "a\nb"})) == (Code.BAD_ID, "id")
    assert code(decode(b"[]", (("content-type", b"application/cloudevents+json"),))) == (Code.NOT_AN_OBJECT, "")
    assert code(decode(b'{"a":1,"a":2}', (("content-type", b"application/cloudevents+json"),))) == (
        Code.DUPLICATE_FIELD,
        "a",
    )
    deep = b'{"data":' + b"[" * 65 + b"]" * 65 + b"}"
    assert code(decode(deep, (("content-type", b"application/cloudevents+json"),))) == (Code.TOO_DEEP, "payload")


def test_what_differs_each_time_an_event_is_sent_is_no_content() -> None:
    one = good(binary(b"", {"ce_time": "2026-01-01T00:00:00Z", "ce_traceparent": "00-1"}))
    two = good(binary(b"", {"ce_time": "2026-01-01T00:00:09Z", "ce_traceparent": "00-2"}, (("traceparent", b"3"),)))
    assert one.digest == two.digest
    assert ("ce_time", b"2026-01-01T00:00:00Z") in one.headers
    assert one.digest != good(binary(b"", {"ce_source": "/other"})).digest


def test_the_shard_is_found_for_events_too() -> None:
    assert isinstance(binary(b"", {"ce_id": "another"}), Foreign) == (shard_of("acme/another") != shard_of(KEY))
