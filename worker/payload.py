"""How does a payload become the value that a handler's first argument says?

By its content type: JSON (also where none is given), any `…+json`, msgpack. An argument of type `bytes` takes the
payload as it is, whatever its content type. No payload at all is read as a null. Everything that the decoders raise
comes out as a `ValueError`. Pure.
"""

from collections.abc import Callable
from typing import Any

import msgspec

JSON = "application/json"
MSGPACK_TYPES = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})

Decode = Callable[[bytes, str], Any]
"""From the payload and its content type ("" for none)."""


def decoder_for(payload_type: Any) -> Decode:
    """Raise `TypeError` for a type that no payload can be decoded to."""
    if payload_type is bytes:
        return lambda payload, _: payload
    if isinstance(msgspec.inspect.type_info(payload_type), msgspec.inspect.CustomType):
        raise TypeError(f"no payload can be decoded to {payload_type}: take a msgspec.Struct, a dict, … or bytes")
    from_json = msgspec.json.Decoder(payload_type)
    from_msgpack = msgspec.msgpack.Decoder(payload_type)

    def decode(payload: bytes, content_type: str) -> Any:
        media_type = content_type.partition(";")[0].strip().lower()
        if media_type in {"", JSON} or media_type.endswith("+json"):
            return _guarded(from_json.decode, payload or b"null")
        if media_type in MSGPACK_TYPES:
            return _guarded(from_msgpack.decode, payload or b"\xc0")
        raise ValueError(f"content type {media_type!r} is neither JSON nor msgpack: take `bytes` to get it as it is")

    return decode


def _guarded(decode: Callable[[bytes], Any], payload: bytes) -> Any:
    """A `UnicodeDecodeError` is a `ValueError`, as is msgspec's own; nesting too deep is none."""
    try:
        return decode(payload)
    except RecursionError:
        raise ValueError("nested too deep") from None
