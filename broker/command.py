"""What can a record of `submit` or `forwarded` ask for, and why can it be refused?

These are the decoder's results: plain values that the applier decides on. Each knows where it stood, for its
position makes the filing that it causes.
"""

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from ..store.record import Headers, Retry

OnConflict = Literal["reject", "replace", "keep"]


class Standing(Struct, frozen=True, gc=False):
    """Where a command stood first, and where it stands now.

    `log` and `position` are of the record that the owner reads (they make the filing); `time_ms` is the time of the
    record in which the command was first sent, from which delays count. `origin` is -1, or for a forwarded command
    partition << 61 | position of that first record.
    """

    log: int
    position: int
    time_ms: int
    origin: int = -1


class Submit(Struct, frozen=True, gc=False, kw_only=True):
    """Run this once at its due time. Exactly one of the due time and the delay was given; `due_ms` is the result."""

    at: Standing
    key: str
    digest: bytes
    queue: str
    due_ms: int
    payload: bytes
    headers: Headers = ()
    priority: int = 2
    max_attempts: int = 5
    retry: Retry = Retry()
    timeout_ms: int = 0
    expires_ms: int = 0
    on_conflict: OnConflict = "reject"
    receipt: str | None = None


class Cancel(Struct, frozen=True, gc=False, kw_only=True):
    """Do not run it, if it has not been published yet."""

    at: Standing
    key: str
    receipt: str | None = None


class Reschedule(Struct, frozen=True, gc=False, kw_only=True):
    """Run it at another time: a replacing submission whose content is that of the waiting filing."""

    at: Standing
    key: str
    due_ms: int
    receipt: str | None = None


class Redrive(Struct, frozen=True, gc=False, kw_only=True):
    """File a dead task anew, from its dead letter, with a fresh count of attempts."""

    at: Standing
    key: str
    due_ms: int
    receipt: str | None = None


class Discard(Struct, frozen=True, gc=False, kw_only=True):
    """Put a dead letter away for good."""

    at: Standing
    key: str
    receipt: str | None = None


Command = Submit | Cancel | Reschedule | Redrive | Discard


class Code(StrEnum):
    """Why a record was refused: the closed list that docs/submitting.md explains."""

    EMPTY = "empty"
    NOT_DECODABLE = "not_decodable"
    TOO_DEEP = "too_deep"
    NOT_AN_OBJECT = "not_an_object"
    DUPLICATE_FIELD = "duplicate_field"
    UNKNOWN_FIELD = "unknown_field"
    UNKNOWN_CONTENT_TYPE = "unknown_content_type"
    UNKNOWN_VERSION = "unknown_version"
    UNKNOWN_OP = "unknown_op"
    MISSING_FIELD = "missing_field"
    BAD_VALUE = "bad_value"
    BAD_ID = "bad_id"
    BAD_TENANT = "bad_tenant"
    BAD_QUEUE = "bad_queue"
    BAD_DUE = "bad_due"
    DUE_IN_SECONDS = "due_in_seconds"
    DUE_AND_DELAY = "due_and_delay"
    KEY_MISMATCH = "key_mismatch"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    BATCH_TOO_LARGE = "batch_too_large"
    NO_POSITION = "no_position"
    UNKNOWN_QUEUE = "unknown_queue"
    UNSUPPORTED = "unsupported"
    WRONG_SHARD = "wrong_shard"
    UNKNOWN_FILING = "unknown_filing"


class InvalidTask(ValueError):
    """What was asked for can't be accepted as it is: raised to whoever asks locally, a `Rejection` to all others."""

    def __init__(self, code: Code, message: str, field: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field


class Rejection(Struct, frozen=True, gc=False):
    """A record, or one item of a batch record, that was refused; `item` is that item's own bytes."""

    at: Standing
    code: Code
    message: str
    field: str = ""
    item: bytes | None = None


class Foreign(Struct, frozen=True, gc=False):
    """A good command of another shard: to be forwarded there in `value` with `headers`, keyed by `key`.

    The value is as it was sent (None for a cancelling record); one of the headers says where it stood first.
    """

    at: Standing
    shard: int
    key: str
    value: bytes | None
    headers: Headers


Decoded = Command | Rejection | Foreign
