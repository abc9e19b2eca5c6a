"""What does Minutewheel ask of a store?

Two kinds of write, never mixed on one table. *Plain* rows (buckets, tasks, dead letters) are written with a
timestamp of the owner's making (`position.write_timestamp`): the higher one wins whatever the order of arrival, and
a dropped bucket hides every row at or below the drop's timestamp, also one that lands later. *Progress* is written
only under the condition that the stored fence is the writer's. The store checks nothing else: a twin that is
stronger than that would hide what the simulation must find.

Errors: `NotApplied` and `UnknownOutcome` (see `errors`), from any method. Plain values in and out, in batches.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from .progress import Checkpoint, Closing, Marks, Offsets, Progress
from .task import BucketRow, DeadLetter, PlainRow, TaskRow

Place = tuple[int, int, int]
"""A filing's place inside its shard: (minute, due_ms, filing)."""


class Store(Protocol):
    """The dispatchers' store. `shard` is 0 … 63."""

    async def set_up(self, open_minute: int, offsets: Sequence[Offsets]) -> None:
        """Create what is missing: each shard's progress at fence 0, with its logs' starts. Repeatable."""

    async def claim(self, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
        """Raise the stored fence to `fence` and record the predecessor's ends (its stored offsets) as its reign.

        One conditional step. Claiming again with the fence and member that stand is answered as the first time.
        The marks returned are those of the open minutes up to `marks_up_to`. `ClaimRefused` when the stored fence is
        as high (under another member) or higher.
        """

    async def record(self, shard: int, fence: int, checkpoint: Checkpoint) -> bool:
        """Write a checkpoint if the stored fence is `fence`: false if it is not, and then nothing was written."""

    async def progress(self, shard: int, marks_up_to: int) -> Progress:
        """The shard's progress as the last conditional write left it (a serial read)."""

    async def marks(self, shard: int, minutes: Sequence[int]) -> dict[int, Marks]:
        """The journals of some minutes; those without marks may be missing."""

    async def write(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
        """Put plain rows, each key's last write (by timestamp) standing. Repeatable; none atomic with another."""

    async def tasks(self, shard: int, keys: Sequence[str]) -> list[TaskRow]:
        """The rows of those keys that have one, in any order."""

    async def page(self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        """A bucket piece's rows above `after` = (due_ms, filing), ascending; fewer than `limit` only at its end."""

    async def filings(self, shard: int, places: Sequence[Place]) -> list[BucketRow]:
        """Single bucket rows by their place, in whichever piece they stand; what is not there is left out."""

    async def drop(self, shard: int, minute: int, pieces: int, timestamp: int) -> None:
        """Hide all rows of a bucket, pieces 0 … pieces - 1, written at or below the timestamp."""

    async def put_closing(self, shard: int, closing: Closing) -> None:
        """Keep a minute's closing record, for a limited time."""

    async def closing(self, shard: int, minute: int) -> Closing | None:
        """A minute's closing record, if it is closed and not long past."""

    async def letters(self, shard: int, keys: Sequence[str]) -> list[DeadLetter]:
        """The letters of those keys that have one with a record, in any order."""

    async def dead_letters(self, shard: int, after: str, limit: int) -> list[DeadLetter]:
        """Letters that are neither redriven nor dropped, by key above `after`, ascending."""


class Queue(Struct, frozen=True, forbid_unknown_fields=True):
    """A declared queue. `outcomes` is "none" for one whose tasks are settled when they are published."""

    name: str
    outcomes: str = "expected"
    note: str = ""


class Catalog(Protocol):
    """The declarations that the whole fleet shares."""

    async def put_queue(self, queue: Queue) -> None:
        """Declare a queue, or change it."""

    async def queues(self) -> list[Queue]:
        """All declared queues, by name."""


class Granted(Struct, frozen=True, gc=False):
    """The handler may start; `starts` counts the starts of this filing, this one included."""

    filing: int
    starts: int


class Finished(Struct, frozen=True, gc=False):
    """The filing has run already: skip it."""

    filing: int


class Held(Struct, frozen=True, gc=False):
    """Another holder runs it until then."""

    filing: int
    until_ms: int


ClaimAnswer = Granted | Finished | Held


class Ledger(Protocol):
    """The workers' memory of which filings have run. A batch is of one (queue, shard, minute)."""

    async def claim(
        self, place: tuple[str, int, int], filings: Sequence[int], holder: str, now_ms: int, until_ms: int
    ) -> list[ClaimAnswer]:
        """Take the filings for `holder` until then, counting a start of each that is granted; in the order asked.

        A holder that claims what it holds itself is granted it again, which counts as a start.
        """

    async def renew(self, place: tuple[str, int, int], filings: Sequence[int], holder: str, until_ms: int) -> list[int]:
        """Hold on until then; the answer names those that the holder still holds."""

    async def finish(self, place: tuple[str, int, int], filings: Sequence[int]) -> None:
        """Write down that these have run. Plain and final: it needs no claim."""

    async def release(self, place: tuple[str, int, int], filings: Sequence[int], holder: str, *, uncount: bool) -> None:
        """Let go what was not run, so that another need not wait; with `uncount` the start is taken back."""

    async def running(self, now_ms: int) -> list[tuple[tuple[str, int, int], int, str, int]]:
        """What is claimed, not finished and not run out: (place, filing, holder, starts)."""
