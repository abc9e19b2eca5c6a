"""Where do the tasks of an embedded Minutewheel stand? In one file, `store.sqlite`, that survives a kill at any point.

The semantics are the real store's, no stronger where it matters: plain writes know timestamps and no fence, so a stale
owner's write loses only where a newer row stands, and lands where none does; the fence is the condition of `claim` and
`record` alone. In one point this twin is stronger: the rows of one `write` are one transaction, since that is what
makes it fast. No caller may count on it: a simulation that looks for torn batches writes their rows one by one.

Reads may have a connection and a thread of their own, so that a look-up does not wait behind the disk of a write;
`progress` is a serial read and waits its turn among the writes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Self, TypeVar, TypeVarTuple

from . import sqlite_progress, sqlite_rows
from .port import Place, Queue
from .progress import Checkpoint, Closing, Marks, Offsets, Progress
from .sqlite_connection import BUSY_TIMEOUT_MS, Call, Connection, GroupCommit, Schema, Synchronous
from .task import SHARDS, BucketRow, DeadLetter, PlainRow, TaskRow

T = TypeVar("T")
Args = TypeVarTuple("Args")

SCHEMA = Schema(1, f"{sqlite_progress.TABLES};{sqlite_rows.TABLES}")


class SqliteStore:
    """The embedded `Store` and `Catalog`. Several processes may have the same file open."""

    def __init__(self, writer: Connection, write: Call, reader: Connection, read: Call) -> None:
        self._writer = writer
        self._group = GroupCommit(writer, write)
        self._call_write = write
        self._reader = reader
        self._call_read = read

    @classmethod
    async def open(
        cls,
        path: str,
        call: Call,
        look_up: Call | None = None,
        *,
        synchronous: Synchronous = "FULL",
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> Self:
        """Open or make the file; all work runs through `call`, but reads through `look_up` if it is given.

        The calls stay the caller's, to be closed after the store. Raise `StoreError` for a file that can't be opened,
        `NewerSchema` for one of a later release.
        """
        opening = partial(Connection.open, path, SCHEMA, synchronous=synchronous, busy_timeout_ms=busy_timeout_ms)
        writer = await call(opening)
        if look_up is None:
            return cls(writer, call, writer, call)
        return cls(writer, call, await look_up(opening), look_up)

    async def close(self) -> None:
        """Close the file; whatever is called later is `NotApplied`."""
        if self._reader is not self._writer:
            await self._call_read(self._reader.close)
        await self._call_write(self._writer.close)

    async def set_up(self, open_minute: int, offsets: Sequence[Offsets]) -> None:
        await self._write(sqlite_progress.set_up, open_minute, offsets)

    async def claim(self, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
        return await self._write(sqlite_progress.claim, shard, fence, member, marks_up_to)

    async def record(self, shard: int, fence: int, checkpoint: Checkpoint) -> bool:
        return await self._write(sqlite_progress.record, shard, fence, checkpoint)

    async def progress(self, shard: int, marks_up_to: int) -> Progress:
        return await self._call_write(lambda: self._writer.read(sqlite_progress.read, shard, marks_up_to))

    async def marks(self, shard: int, minutes: Sequence[int]) -> dict[int, Marks]:
        return await self._read(sqlite_progress.marks, shard, minutes)

    async def write(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
        await self._write(sqlite_rows.write, shard, timestamp, rows)

    async def tasks(self, shard: int, keys: Sequence[str]) -> list[TaskRow]:
        return await self._read(sqlite_rows.tasks, shard, keys)

    async def page(self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        return await self._read(sqlite_rows.page, shard, minute, piece, after, limit)

    async def filings(self, shard: int, places: Sequence[Place]) -> list[BucketRow]:
        return await self._read(sqlite_rows.filings, shard, places)

    async def drop(self, shard: int, minute: int, pieces: int, timestamp: int) -> None:
        await self._write(sqlite_rows.drop, shard, minute, pieces, timestamp)

    async def put_closing(self, shard: int, closing: Closing) -> None:
        await self._write(sqlite_rows.put_closing, shard, closing)

    async def closing(self, shard: int, minute: int) -> Closing | None:
        return await self._read(sqlite_rows.closing, shard, minute)

    async def letters(self, shard: int, keys: Sequence[str]) -> list[DeadLetter]:
        return await self._read(sqlite_rows.letters, shard, keys)

    async def dead_letters(self, shard: int, after: str, limit: int) -> list[DeadLetter]:
        return await self._read(sqlite_rows.dead_letters, shard, after, limit)

    async def put_queue(self, queue: Queue) -> None:
        await self._write(sqlite_rows.put_queue, queue)

    async def queues(self) -> list[Queue]:
        return await self._read(sqlite_rows.queues)

    async def prune(self, now_ms: int, retention_ms: int) -> int:
        """Delete final task rows and old traces past the retention, shard by shard; the answer counts the rows.

        A dead task stays while its letter does; one that is neither redriven nor dropped stays for ever.
        """
        return sum([await self._write(sqlite_rows.prune, shard, now_ms, retention_ms) for shard in range(SHARDS)])

    async def _write(self, work: Callable[..., T], *args: object) -> T:
        return await self._group.write(work, *args)

    async def _read(self, work: Callable[..., T], *args: object) -> T:
        return await self._call_read(lambda: self._reader.read(work, *args))
