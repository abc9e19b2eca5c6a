"""What was decided on a command, and what became of the task, for those who asked to be told?

A receipt goes to the partition of `receipts` that is the task's shard, keyed by the task, in JSON. Numbers above
2⁵³ are written as text, for many readers of JSON would round them.
"""

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from ..store.position import Log
from .command import Code, InvalidTask, Standing
from .wire import Message, Record, Topics

Op: TypeAlias = Literal["submit", "cancel", "reschedule", "redrive", "discard", "outcome"]


class Answer(StrEnum):
    """What is said of a command, or of a task."""

    ACCEPTED = "accepted"
    """A new task is filed."""
    DUPLICATE = "duplicate"
    """The same was accepted before; `state` is its present one."""
    REPLACED = "replaced"
    """Filed in the place of an earlier version."""
    KEPT = "kept"
    """Another version was there and stays, as was asked for."""
    ID_CONFLICT = "id_conflict"
    """Another version is there, so this one is refused."""
    CANCELLED = "cancelled"
    TOO_LATE = "too_late"
    """It is published already; nothing further of it is filed."""
    UNKNOWN = "unknown"
    """There is no such task."""
    NOT_DEAD = "not_dead"
    """Only a dead task can be redriven or discarded."""
    RESCHEDULED = "rescheduled"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"
    DONE = "done"
    DEAD = "dead"
    EXPIRED = "expired"


class Receipt(Struct, frozen=True, gc=False, kw_only=True):
    """One answer. `receipt` is the submitter's own mark; `at` is where the command or outcome stood; `due_ms` and
    `filing` are those of the filing that waits or ran, -1 where there is none.
    """

    op: Op
    key: str
    answer: Answer
    receipt: str
    at: Standing
    state: str = ""
    filing: int = -1
    due_ms: int = -1
    attempt: int = 0
    note: str = ""


class Written(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A receipt in JSON."""

    op: Op
    key: str
    answer: Answer
    receipt: str
    log: int
    position: str
    time_ms: int
    origin: str = "-1"
    state: str = ""
    filing: str = "-1"
    due_ms: int = -1
    attempt: int = 0
    note: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Written).decode


def receipt_message(topics: Topics, shard: int, receipt: Receipt) -> Message:
    at = receipt.at
    written = Written(
        op=receipt.op,
        key=receipt.key,
        answer=receipt.answer,
        receipt=receipt.receipt,
        log=at.log,
        position=str(at.position),
        time_ms=at.time_ms,
        origin=str(at.origin),
        state=receipt.state,
        filing=str(receipt.filing),
        due_ms=receipt.due_ms,
        attempt=receipt.attempt,
        note=receipt.note,
    )
    return Message(topics.receipts, receipt.key.encode(), _encode(written), partition=shard)


def decode_receipt(record: Record) -> Receipt:
    """Read a record of `receipts`; `InvalidTask` (not_decodable) if it is none of ours."""
    try:
        written = _decode(record.value or b"")
        at = Standing(Log(written.log), int(written.position), written.time_ms, int(written.origin))
        filing = int(written.filing)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidTask(Code.NOT_DECODABLE, f"no receipt: {error}") from None
    return Receipt(
        op=written.op,
        key=written.key,
        answer=written.answer,
        receipt=written.receipt,
        at=at,
        state=written.state,
        filing=filing,
        due_ms=written.due_ms,
        attempt=written.attempt,
        note=written.note,
    )
