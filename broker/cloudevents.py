"""How is a CloudEvent read as a submission?

Version 1.0, in both content modes of its Kafka binding. *Structured*: the record is one JSON object
(`application/cloudevents+json`), the payload its `data` or `data_base64`. *Binary*: the attributes are headers
`ce_<name>`, the payload is the record's value, any bytes. The event's `id` is the task's. What we need besides is
given by extension attributes: `mwqueue`, `mwdue`, `mwdelayms` … (names of attributes have no underscores), and in
binary mode as well by headers of our own, `mw_queue`, `mw_due`, `mw_delay_ms` ….

The due record is the event in binary mode, whichever way it came: all attributes but ours stand in its headers.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from ..store.record import Headers
from .command import Code, InvalidTask
from .form import RESERVED, Form, Sent, shown, transport_headers
from .media import CONTENT_TYPE
from .plain import UNREADABLE, read_fields

REQUIRED = ("specversion", "id", "source", "type")
OURS = "mw"
TEXTS = {"op": "op", "tenant": "tenant", "queue": "queue", "due": "due", "expires": "expires"}
TEXTS |= {"onconflict": "on_conflict", "receipt": "receipt"}
NUMBERS = {"duems": "due", "delayms": "delay_ms", "priority": "priority", "maxattempts": "max_attempts"}
NUMBERS |= {"timeoutms": "timeout_ms", "expiresms": "expires", "version": "version"}
RETRIES = {"retrybasems": "base_ms", "retrycapms": "cap_ms", "retryfactor": "factor"}
UNSUPPORTED = frozenset({"limits", "after", "windowms", "group"})
PER_SEND = frozenset({"ce_time", "ce_traceparent", "ce_tracestate"})
"""Attributes that differ when the same event is sent again: passed on, but no part of the digest."""
DIGITS_MAX = 18

_text = msgspec.json.Decoder(str).decode
_base64 = msgspec.json.Decoder(bytes).decode
_scalar = msgspec.json.Decoder(str | int | bool | None).decode


def read_binary(headers: Headers, value: bytes | None) -> Sent:
    """A submission from headers; a null value is an empty payload."""
    attributes: dict[str, str] = {}
    ours: list[tuple[str, str]] = []
    content: list[tuple[str, bytes | None]] = []
    transport: list[tuple[str, bytes | None]] = []
    for header in headers:
        name = header[0]
        if name.startswith((RESERVED, "ce_" + OURS)):
            ours.append((name, _header_text(header)))
            continue
        if name.startswith("ce_"):
            _put(attributes, name.removeprefix("ce_"), _header_text(header))
        belongs = name.startswith("ce_") or name.lower() == CONTENT_TYPE
        (content if belongs and name not in PER_SEND else transport).append(header)
    _check_attributes(attributes)
    return Sent(_form(attributes["id"], ours), value or b"", tuple(content), tuple(transport))


def read_structured(headers: Headers, value: bytes, nesting: int) -> Sent:
    """A submission from one JSON object; the record's own headers come along."""
    attributes: dict[str, str] = {}
    ours: list[tuple[str, str]] = []
    fields = read_fields(value, nesting)
    for name, raw in fields.items():
        if name not in ("data", "data_base64"):
            text = _attribute_text(name, raw)
            if text is not None and name.startswith(OURS):
                ours.append((name, text))
            elif text is not None:
                attributes[name] = text
    _check_attributes(attributes)
    media_type = attributes.pop("datacontenttype", None)
    content = [(f"ce_{name}", text.encode()) for name, text in attributes.items()]
    if media_type is not None:
        content.append((CONTENT_TYPE, media_type.encode()))
    per_send = tuple(header for header in content if header[0] in PER_SEND)
    return Sent(
        _form(attributes["id"], ours),
        _data(fields, media_type),
        tuple(header for header in content if header[0] not in PER_SEND),
        (*transport_headers(headers), *per_send),
    )


def _header_text(header: tuple[str, bytes | None]) -> str:
    try:
        return (header[1] or b"").decode()
    except UnicodeDecodeError:
        raise InvalidTask(Code.NOT_DECODABLE, "the header is not UTF-8", shown(header[0])) from None


def _attribute_text(name: str, raw: Raw) -> str | None:
    """An attribute as a header says it, or None for a null, which is as good as absent."""
    try:
        value = _scalar(raw)
    except UNREADABLE:
        message = "an attribute is a string, an integer or a boolean"
        raise InvalidTask(Code.BAD_VALUE, message, shown(name)) from None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else str(value)


def _check_attributes(attributes: dict[str, str]) -> None:
    for name in REQUIRED:
        if not attributes.get(name):
            raise InvalidTask(Code.MISSING_FIELD, f"a CloudEvent needs {name}", name)
    version = attributes["specversion"]
    if version != "1.0":
        raise InvalidTask(Code.UNKNOWN_VERSION, "only CloudEvents 1.0 is known here", "specversion")
    for name in attributes:
        if not (name.isascii() and name.isalnum()):
            hint = "; write ours without: mwqueue" if name.startswith(OURS) else ""
            message = f"an attribute's name has only letters and digits{hint}"
            raise InvalidTask(Code.BAD_VALUE, message, shown(name))


def _data(fields: dict[str, Raw], media_type: str | None) -> bytes:
    """The payload: JSON as it stood, the text of a string when its type is none of JSON's, or decoded base64."""
    data, encoded = fields.get("data"), fields.get("data_base64")
    if encoded is not None:
        if data is not None:
            raise InvalidTask(Code.BAD_VALUE, "data and data_base64 exclude each other", "data_base64")
        try:
            return _base64(encoded)
        except UNREADABLE:
            raise InvalidTask(Code.BAD_VALUE, "data_base64 is no base64", "data_base64") from None
    if data is None:
        return b""
    raw = bytes(data)
    return raw if _is_json(media_type) or not raw.startswith(b'"') else _string(raw)


def _string(raw: bytes) -> bytes:
    try:
        return _text(raw).encode()
    except UNREADABLE as error:
        raise InvalidTask(Code.NOT_DECODABLE, f"data: {error}", "data") from None


def _is_json(media_type: str | None) -> bool:
    if media_type is None:
        return True
    base = media_type.partition(";")[0].strip().lower()
    return base.endswith(("/json", "+json"))


def _put(fields: dict[str, str], name: str, text: str) -> None:
    if name in fields:
        raise InvalidTask(Code.DUPLICATE_FIELD, "an attribute is given twice", shown(name))
    fields[name] = text


def _form(task_id: str, ours: Iterable[tuple[str, str]]) -> Form:
    """What our attributes and headers ask for; each is known by its name without underscores."""
    given: dict[str, str | int] = {}
    retry: dict[str, float] = {}
    for name, text in ours:
        short = name.removeprefix("ce_").removeprefix(OURS).replace("_", "")
        if short in UNSUPPORTED:
            raise InvalidTask(Code.UNSUPPORTED, "this is not supported by this version", shown(name))
        field = TEXTS.get(short) or NUMBERS.get(short) or RETRIES.get(short)
        if field is None:
            raise InvalidTask(Code.UNKNOWN_FIELD, "there is no field of this name", shown(name))
        if field in given or field in retry:
            raise InvalidTask(Code.DUPLICATE_FIELD, f"{field} is given twice", shown(name))
        if short in TEXTS:
            given[field] = text
        elif short in NUMBERS:
            given[field] = _number(name, text)
        else:
            retry[field] = _factor(name, text) if field == "factor" else _number(name, text)
    return msgspec.convert({**given, "id": task_id, **({"retry": retry} if retry else {})}, Form)


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX):
        field = shown(name)
        code = Code.BAD_DUE if "due" in name else Code.BAD_VALUE
        raise InvalidTask(code, f"{field} is a whole number in decimal digits", field)
    return int(text)


def _factor(name: str, text: str) -> float:
    try:
        return msgspec.convert(text, float, strict=False)
    except msgspec.ValidationError:
        raise InvalidTask(Code.BAD_VALUE, "a factor is a decimal number", shown(name)) from None
