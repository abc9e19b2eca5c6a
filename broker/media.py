"""Which form does a record have, by its headers?"""

from collections.abc import Iterable
from functools import lru_cache

from ..store.record import Headers
from .command import Code, InvalidTask
from .wire import JSON, MSGPACK

CONTENT_TYPE = "content-type"
STRUCTURED = "application/cloudevents+json"
BATCH_JSON = "application/vnd.minutewheel.batch+json"
BATCH_MSGPACK = "application/vnd.minutewheel.batch+msgpack"
MSGPACK_NAMES = (MSGPACK, "application/x-msgpack", "application/vnd.msgpack")
CHARSETS = ("utf-8", "utf8", "us-ascii")
SPEC_VERSION = "ce_specversion"


def media_type_of(headers: Headers) -> str:
    """The content-type without its parameters, in lower case; JSON if there is none."""
    for name, value in headers:
        if name == CONTENT_TYPE or name.lower() == CONTENT_TYPE:
            base, parameters = _parsed(value or b"")
            if parameters and not is_binary_event(headers):
                _check_charset(parameters)
            return base
    return JSON


def is_binary_event(headers: Headers) -> bool:
    """Whether the record is a CloudEvent in binary mode, whose content-type is that of its payload."""
    for name, _ in headers:  # noqa: SIM110 - the hot path: no generator
        if name == SPEC_VERSION:
            return True
    return False


@lru_cache(maxsize=256)
def _parsed(value: bytes) -> tuple[str, tuple[str, ...]]:
    """A content-type and its parameters, in lower case."""
    base, *parameters = value.decode("latin-1").lower().split(";")
    return base.strip(), tuple(parameters)


def _check_charset(parameters: Iterable[str]) -> None:
    for parameter in parameters:
        attribute, _, charset = parameter.strip().partition("=")
        if attribute == "charset" and charset.strip('"') not in CHARSETS:
            raise InvalidTask(Code.UNKNOWN_CONTENT_TYPE, "the only charset is UTF-8", CONTENT_TYPE)
