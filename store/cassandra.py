"""Where do the tasks of a fleet stand? In a keyspace of Cassandra: plain rows with the owners' timestamps, and each
shard's progress under conditional writes.

The two halves are never mixed on one table: `cassandra_rows` has the plain one, `cassandra_progress` the conditional
one. Reads and writes are at LOCAL_QUORUM, conditional writes at LOCAL_SERIAL. docs/cassandra.md tells what the
keyspace must be like, and how it is looked after.
"""

from collections.abc import Sequence
from typing import Self

from .cassandra_bridge import CassandraConnection
from .cassandra_progress import CassandraProgress
from .cassandra_rows import CassandraRows, Keep
from .cassandra_schema import parts_of
from .port import Place, Queue
from .progress import Checkpoint, Closing, Marks, Offsets, Progress
from .task import BucketRow, DeadLetter, PlainRow, TaskRow

__all__ = ["CassandraStore", "Keep"]


class CassandraStore:
    """The fleet's `Store` and `Catalog`. Any number of processes may have the keyspace open."""

    def __init__(self, progress: CassandraProgress, rows: CassandraRows) -> None:
        self._progress = progress
        self._rows = rows

    @classmethod
    async def open(cls, connection: CassandraConnection, keyspace: str, *, keep: Keep | None = None) -> Self:
        """Prepare what is needed. The connection stays the caller's, to be closed after the store.

        `NoSchema` for a keyspace that was not set up, `NewerSchema` for one of a later release.
        """
        parts = await parts_of(connection, keyspace)
        rows = await CassandraRows.open(connection, keyspace, parts, keep or Keep())
        return cls(await CassandraProgress.open(connection, keyspace), rows)

    async def set_up(self, open_minute: int, offsets: Sequence[Offsets]) -> None:
        await self._progress.set_up(open_minute, offsets)

    async def claim(self, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
        return await self._progress.claim(shard, fence, member, marks_up_to)

    async def record(self, shard: int, fence: int, checkpoint: Checkpoint) -> bool:
        return await self._progress.record(shard, fence, checkpoint)

    async def progress(self, shard: int, marks_up_to: int) -> Progress:
        return await self._progress.progress(shard, marks_up_to)

    async def marks(self, shard: int, minutes: Sequence[int]) -> dict[int, Marks]:
        return await self._progress.marks(shard, minutes)

    async def write(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
        await self._rows.write(shard, timestamp, rows)

    async def tasks(self, shard: int, keys: Sequence[str]) -> list[TaskRow]:
        return await self._rows.tasks(shard, keys)

    async def page(self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        return await self._rows.page(shard, minute, piece, after, limit)

    async def filings(self, shard: int, places: Sequence[Place]) -> list[BucketRow]:
        pieces = await self._progress.pieces(shard) if places else {}
        return await self._rows.filings(shard, places, pieces)

    async def drop(self, shard: int, minute: int, pieces: int, timestamp: int) -> None:
        await self._rows.drop(shard, minute, pieces, timestamp)

    async def put_closing(self, shard: int, closing: Closing) -> None:
        await self._rows.put_closing(shard, closing)

    async def closing(self, shard: int, minute: int) -> Closing | None:
        return await self._rows.closing(shard, minute)

    async def letters(self, shard: int, keys: Sequence[str]) -> list[DeadLetter]:
        return await self._rows.letters(shard, keys)

    async def dead_letters(self, shard: int, after: str, limit: int) -> list[DeadLetter]:
        return await self._rows.dead_letters(shard, after, limit)

    async def put_queue(self, queue: Queue) -> None:
        await self._rows.put_queue(queue)

    async def queues(self) -> list[Queue]:
        return await self._rows.queues()
