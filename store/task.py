"""What does the store know of a task, and what stands in a bucket for each of its filings?

A *task row* is the present state of one key; its shard's owner alone writes it, always whole. A *bucket row* is
one filing: write-once, never updated, gone with its bucket. What became of a filing stands in the journal (see
`progress`), not here. A *dead letter* is what is kept of a task that will not be tried again.
"""

from typing import Literal

from msgspec import Struct

from .position import NO_POSITION

MINUTE_MS = 60_000
SHARDS = 64

State = Literal["scheduled", "done", "dead", "cancelled", "expired"]
"""The states that the owner writes. `queued` and `running` follow from the journal and the ledger."""


def minute_of(time_ms: int) -> int:
    """The bucket of a time: whole minutes since the epoch."""
    return time_ms // MINUTE_MS


class TaskRow(Struct, frozen=True, gc=False):
    """One key's row.

    `filing` is its last one, `origin` the filing that made this version of the task (the same over all retries);
    `submit_pos`, `forwarded_pos` and `outcome_pos` are the last positions decided on in the three logs;
    `forward_origin` is partition << 61 | position of the last forwarded command applied, or -1: 67 bits, so stores
    keep it in two columns (`divmod` by 1 << 61, for -1 too).
    `answer` is what the last of each log was told, joined by @; `ended` says that no further attempt is to be filed.
    """

    key: str
    filing: int
    origin: int
    minute: int
    due_ms: int
    state: State
    attempt: int
    queue: str
    digest: bytes
    submit_pos: int = NO_POSITION
    forwarded_pos: int = NO_POSITION
    outcome_pos: int = NO_POSITION
    forward_origin: int = NO_POSITION
    answer: str = ""
    ended: bool = False
    updated_ms: int = 0
    note: str = ""


class BucketRow(Struct, frozen=True, gc=False):
    """One filing in a bucket; `record` is what `record.pack` made."""

    minute: int
    piece: int
    due_ms: int
    filing: int
    record: bytes


class DeadLetter(Struct, frozen=True, gc=False):
    """A task that will not be tried again: why, and all that is needed to file it anew.

    An empty `record` is a letter that was redriven or dropped: it is listed no more.
    """

    key: str
    filing: int
    queue: str
    reason: str
    attempts: int
    died_ms: int
    record: bytes
    history: str = ""


PlainRow = TaskRow | BucketRow | DeadLetter
"""What plain writes (last write wins, by timestamp) put into the store."""
