"""What stands in a minute, and what follows from it? Rows, marks, and the closing record once it is closed.

It reads what the owners wrote and asks none of them: waiting = rows − marks. A minute that changes meanwhile may be
seen a step behind, shard by shard.
"""

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from msgspec import Struct

from .progress import Closing, Marks, Progress
from .record import unpack
from .task import MINUTE_MS, SHARDS, BucketRow

PAGE_ROWS = 5_000


class Reads(Protocol):
    """What of a store is needed."""

    async def progress(self, shard: int, marks_up_to: int) -> Progress: ...
    async def marks(self, shard: int, minutes: list[int]) -> dict[int, Marks]: ...
    async def page(
        self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int
    ) -> list[BucketRow]: ...
    async def closing(self, shard: int, minute: int) -> Closing | None: ...


class Row(Struct, frozen=True, gc=False):
    """One filing of a minute. `state` is what follows: waiting, fired or removed. The filing is text, for many
    readers of JSON would round it."""

    minute: int
    shard: int
    due_ms: int
    key: str
    queue: str
    attempt: int
    filing: str
    state: str


class Audit(Struct, kw_only=True):
    """A minute over all shards. In shards where it is closed the numbers are those of the closing records;
    `unrecorded_shards` counts closed ones without any (nothing was filed there, or it is long past).

    `missing` are filings without a mark although the minute is over; in one that is not, they wait.
    """

    minute: int
    over: bool
    closed_shards: int = 0
    unrecorded_shards: int = 0
    rows: int = 0
    fired: int = 0
    removed: int = 0
    late: int = 0
    waiting: int = 0
    missing: list[Row] = []

    @property
    def state(self) -> str:
        if self.closed_shards == SHARDS:
            return "closed"
        return "partly closed" if self.closed_shards else "open"


async def rows_of(store: Reads, minutes: Iterable[int]) -> AsyncIterator[Row]:
    """The filings of these minutes, by minute, shard and due time. A closed minute has none any more."""
    progresses = [await store.progress(shard, -1) for shard in range(SHARDS)]
    for minute in minutes:
        for progress in progresses:
            if not is_closed(progress, minute):
                async for row in _rows_of_shard(store, progress, minute):
                    yield row


async def audit_of(store: Reads, minute: int, now_ms: int) -> Audit:
    """Count a minute, and name what is missing in it."""
    audit = Audit(minute=minute, over=(minute + 1) * MINUTE_MS <= now_ms)
    for shard in range(SHARDS):
        progress = await store.progress(shard, -1)
        if is_closed(progress, minute):
            _count_closing(audit, await store.closing(shard, minute))
        else:
            await _count_rows(audit, store, progress)
    return audit


async def waiting_in(store: Reads, progress: Progress, minute: int) -> int:
    """How many filings of an open minute have no mark."""
    return sum([row.state == "waiting" async for row in _rows_of_shard(store, progress, minute)])


def is_closed(progress: Progress, minute: int) -> bool:
    return minute < progress.open_minute or minute in progress.closed


def _count_closing(audit: Audit, closing: Closing | None) -> None:
    audit.closed_shards += 1
    if closing is None:
        audit.unrecorded_shards += 1
        return
    audit.rows += closing.rows
    audit.fired += closing.fired
    audit.removed += closing.removed
    audit.late += closing.late


async def _count_rows(audit: Audit, store: Reads, progress: Progress) -> None:
    async for row in _rows_of_shard(store, progress, audit.minute):
        audit.rows += 1
        if row.state == "fired":
            audit.fired += 1
        elif row.state == "removed":
            audit.removed += 1
        elif audit.over:
            audit.missing.append(row)
        else:
            audit.waiting += 1


async def _rows_of_shard(store: Reads, progress: Progress, minute: int) -> AsyncIterator[Row]:
    shard = progress.shard
    marks = (await store.marks(shard, [minute])).get(minute, Marks())
    for piece in range(progress.pieces.get(minute, 1)):
        after = (-1, -1)
        while page := await store.page(shard, minute, piece, after, PAGE_ROWS):
            for row in page:
                yield _row(shard, row, marks)
            after = (page[-1].due_ms, page[-1].filing)
            if len(page) < PAGE_ROWS:
                break


def _row(shard: int, row: BucketRow, marks: Marks) -> Row:
    filed = unpack(row.record)
    state = "fired" if row.filing in marks.fired else "removed" if row.filing in marks.removed else "waiting"
    return Row(row.minute, shard, row.due_ms, filed.key, filed.queue, filed.attempt, str(row.filing), state)
