"""Which form does a record have, by its headers?"""

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
        if name.lower() == CONTENT_TYPE:
            base, *parameters = (value or b"").decode("latin-1").lower().split(";")
            if not is_binary_event(headers):
                _check_charset(parameters)
            return base.strip()
    return JSON


def is_binary_event(headers: Headers) -> bool:
    """Whether the record is a CloudEvent in binary mode, whose content-type is that of its payload."""
    return any(name == SPEC_VERSION for name, _ in headers)


def _check_charset(parameters: list[str]) -> None:
    for parameter in parameters:
        attribute, _, charset = parameter.strip().partition("=")
        if attribute == "charset" and charset.strip('"') not in CHARSETS:
            raise InvalidTask(Code.UNKNOWN_CONTENT_TYPE, "the only charset is UTF-8", CONTENT_TYPE)
