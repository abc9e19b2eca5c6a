"""How is a submission read from plain JSON or msgpack, and why was it unreadable?

The good path is one typed decode by msgspec. What msgspec lets through is checked here: bytes that are no UTF-8
(it skips them in a raw payload), a field that is given twice (it takes the last), nesting that only some readers
can follow. Only when the typed decode fails is the record read once more, field by field, to say which is wrong.

The payload of JSON is its own bytes as they stood in the record; that of msgpack is a bin, whose bytes it is: a
payload in msgpack is packed by its sender, so that it, too, arrives as it was sent.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET, DecodeError, Raw, UnsetType, ValidationError

from ..store.record import Headers
from .command import Code, InvalidTask
from .form import RESERVED, UNSUPPORTED, VERSION, Form, Sent, shown

UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError)
"""All that a decoder may raise; a RecursionError depends on the caller's stack, so our own bound lies far below."""
FIELD_CODES = {
    "id": Code.BAD_ID,
    "tenant": Code.BAD_TENANT,
    "queue": Code.BAD_QUEUE,
    "due": Code.BAD_DUE,
    "delay_ms": Code.BAD_DUE,
    "op": Code.UNKNOWN_OP,
}
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
ONE_BRACKET = bytes.maketrans(b"{}", b"[]")
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class JsonForm(Form, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A submission in JSON."""

    payload: Raw | UnsetType = UNSET
    headers: dict[str, str | None] | UnsetType = UNSET


class MsgpackForm(Form, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A submission in msgpack."""

    payload: bytes | UnsetType = UNSET
    headers: dict[str, Any] | UnsetType = UNSET
    """Values are str, bin or nil; msgspec has no type for "str or bytes"."""


_json_form = msgspec.json.Decoder(JsonForm).decode
_msgpack_form = msgspec.msgpack.Decoder(MsgpackForm).decode
_json_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_msgpack_fields = msgspec.msgpack.Decoder(dict[str, Raw]).decode
_json_types: dict[str, Callable[[bytes | Raw], Any]] = {
    field.name: msgspec.json.Decoder(field.type).decode for field in msgspec.structs.fields(JsonForm)
}
_msgpack_types: dict[str, Callable[[bytes | Raw], Any]] = {
    field.name: msgspec.msgpack.Decoder(field.type).decode for field in msgspec.structs.fields(MsgpackForm)
}


def read_json(value: bytes, nesting: int) -> Sent:
    """A submission from a JSON object; the payload nests at most so deep."""
    try:
        _check_utf8(value)
        form = _json_form(value)
    except UNREADABLE as error:
        raise _explain(value, error, _json_fields, _json_types) from None
    payload = b"" if form.payload is UNSET else bytes(form.payload)
    refuse_deep(payload, nesting)
    _refuse_twice_json(value, form, payload)
    return Sent(form, payload, () if form.headers is UNSET else _content(form.headers))


def read_msgpack(value: bytes) -> Sent:
    """A submission from a msgpack map."""
    try:
        form = _msgpack_form(value)
    except UNREADABLE as error:
        raise _explain(value, error, _msgpack_fields, _msgpack_types) from None
    if _pairs(value) != _given(form):
        raise InvalidTask(Code.DUPLICATE_FIELD, "a field is given twice")
    payload = b"" if form.payload is UNSET else form.payload
    return Sent(form, payload, () if form.headers is UNSET else _content(form.headers))


def read_fields(value: bytes, nesting: int) -> dict[str, Raw]:
    """The members of a JSON object, raw, none of them given twice."""
    try:
        _check_utf8(value)
        fields = _json_fields(value)
    except UNREADABLE as error:
        raise unreadable(error) from None
    for raw in fields.values():
        refuse_deep(bytes(raw), nesting)
    _refuse_repeated(value)
    return fields


def refuse_deep(data: bytes, nesting: int) -> None:
    """Refuse well-formed JSON that nests deeper, counting arrays and objects."""
    if data.count(b"[") + data.count(b"{") <= nesting:
        return
    brackets = STRING.sub(b"", data).translate(ONE_BRACKET, NOT_BRACKETS)
    for _ in range(nesting):
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise InvalidTask(Code.TOO_DEEP, f"the payload nests deeper than {nesting}", "payload")


def _check_utf8(value: bytes) -> None:
    if not value.isascii():
        value.decode()


def _content(headers: Mapping[str, Any]) -> Headers:
    for name, value in headers.items():
        if not (value is None or isinstance(value, str | bytes)):
            raise InvalidTask(Code.BAD_VALUE, "a header's value is text, bytes or null", "headers")
        if name.startswith(RESERVED):
            raise InvalidTask(Code.BAD_VALUE, f"headers that begin with {RESERVED} are ours", "headers")
    return tuple((name, text.encode() if isinstance(text, str) else text) for name, text in headers.items())


def _given(form: Form) -> int:
    fields = msgspec.structs.astuple(form)
    return len(fields) - fields.count(UNSET)


def _pairs(value: bytes) -> int:
    """How many pairs a msgpack map has, from its head."""
    head = value[0]
    if head & 0xF0 == 0x80:
        return head & 0x0F
    return int.from_bytes(value[1:3] if head == 0xDE else value[1:5], "big")


def _refuse_twice_json(value: bytes, form: JsonForm, payload: bytes) -> None:
    """Count the quotation marks that the fields explain; only if there are more may a field be there twice."""
    explained = 0
    for field in msgspec.structs.astuple(form):
        if field is not UNSET:
            explained += 4 if isinstance(field, str) else 2
    if form.headers is not UNSET:
        explained += sum(2 if text is None else 4 for text in form.headers.values())
    if value.count(b'"') - payload.count(b'"') != explained:
        _refuse_repeated(value)


def _refuse_repeated(value: bytes) -> None:
    """Read with every pair kept: objects become tuples of pairs, and nothing is turned into a number."""
    members = json.loads(value.decode(), object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=str)
    for name, inner in [("", members), *((name, inner) for name, inner in members if name in ("headers", "retry"))]:
        if isinstance(inner, tuple) and len({pair[0] for pair in inner}) < len(inner):
            raise InvalidTask(Code.DUPLICATE_FIELD, "a field is given twice", name or shown(_first_repeated(inner)))


def _first_repeated(members: tuple[tuple[str, object], ...]) -> str:
    names = [name for name, _ in members]
    return next(name for index, name in enumerate(names) if name in names[:index])


def _explain(
    value: bytes,
    error: Exception,
    fields_of: Callable[[bytes], dict[str, Raw]],
    types: Mapping[str, Callable[[bytes | Raw], Any]],
) -> InvalidTask:
    """Why the typed decode failed."""
    if isinstance(error, UnicodeError):
        return unreadable(error)
    try:
        fields = fields_of(value)
    except UNREADABLE as cause:
        return unreadable(cause)
    if "version" in fields and not _is_version(fields["version"], types):
        return InvalidTask(Code.UNKNOWN_VERSION, f"only version {VERSION} is known here", "version")
    for name, raw in fields.items():
        if name not in types:
            return _unknown(name)
        try:
            types[name](raw)
        except UNREADABLE as cause:
            return InvalidTask(FIELD_CODES.get(name, Code.BAD_VALUE), f"{name}: {cause}", name)
    return unreadable(error)


def _is_version(raw: Raw, types: Mapping[str, Callable[[bytes | Raw], Any]]) -> bool:
    try:
        return cast("bool", types["version"](raw) == VERSION)
    except UNREADABLE:
        return False


def _unknown(name: str) -> InvalidTask:
    if name in UNSUPPORTED:
        return InvalidTask(Code.UNSUPPORTED, f"{name} is not supported by this version", name)
    hint = " (a CloudEvent's content-type is application/cloudevents+json)" if name == "specversion" else ""
    return InvalidTask(Code.UNKNOWN_FIELD, f"there is no field of this name{hint}", shown(name))


def unreadable(error: Exception) -> InvalidTask:
    if isinstance(error, RecursionError):
        return InvalidTask(Code.TOO_DEEP, "it nests too deep to be read")
    if isinstance(error, ValidationError):
        return InvalidTask(Code.NOT_AN_OBJECT, f"{error}")
    if isinstance(error, DecodeError):
        return InvalidTask(Code.NOT_DECODABLE, f"{error}")
    return InvalidTask(Code.NOT_DECODABLE, "it has bytes that are no UTF-8")
