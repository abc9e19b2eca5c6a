"""How does a shard's progress lie in Cassandra, and what is each conditional write?

One partition a shard, seen by conditional writes alone (DESIGN rule F); schema.cql says which rows stand in it. A
checkpoint is one conditional batch. Its condition names the fence and *the checkpoint before it*: so what the writer
knows of the partition is exact when the write is applied, what only grows can be computed here, and a copy of an older
write that comes late is refused by the server. The writer's knowledge is kept from one write to the next, and read
again (serially) when it was wrong.

An unknown answer is resolved by a serial read, which also ends a write that hangs half-way; then the same is tried
again. A closed minute's marks are deleted by a range; reads are slices that begin behind what was deleted.
"""

# ruff: noqa: S608 - statements are put together of constants and a checked keyspace name; values are always bound

from collections.abc import Iterable, Sequence
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from .cassandra_bridge import CassandraConnection, Row, all_of
from .cassandra_statements import Write, conditional
from .errors import ClaimRefused, NotApplied, UnknownOutcome
from .progress import Checkpoint, Marks, NewMarks, Offsets, Progress, pack_filings, unpack_filings
from .task import SHARDS

REIGNS_AT = -2
"""The minute of the reign rows: the lowest, so that a live row stands first."""
CLOSED_AT = -1
"""The minute of the rows of closed minutes."""
ATTEMPTS = 6
"""Tries of one conditional write against others' or against unknown answers."""
FETCH_ROWS = 500

OFFSETS = "submit_pos, forwarded_pos, outcomes_pos"
ENDS = "submit_end, forwarded_end, outcomes_end"
HEAD = f"fence, member, open_minute, dropped_minute, {OFFSETS}, last_checkpoint, pieces"


class Stored(Struct, frozen=True):
    """A shard's progress without its marks. `closed` are the closed minutes at or above `open_minute`."""

    fence: int
    member: str
    open_minute: int
    dropped_minute: int
    offsets: Offsets
    last_checkpoint: int
    pieces: dict[int, int]
    closed: frozenset[int] = frozenset()
    reigns: dict[int, Offsets] = {}


def advanced(stored: Stored, checkpoint: Checkpoint) -> Stored:
    """What stands after the checkpoint: open and dropped minute, offsets and pieces never go back."""
    open_minute = max(stored.open_minute, checkpoint.open_minute)
    dropped_minute = max(stored.dropped_minute, checkpoint.dropped_minute)
    submit, forwarded, outcomes = map(max, stored.offsets, checkpoint.offsets)
    pieces = dict(stored.pieces)
    for minute, count in checkpoint.pieces:
        pieces[minute] = max(count, pieces.get(minute, 1))
    kept_from = min(open_minute, dropped_minute + 1)
    return replace(
        stored,
        open_minute=open_minute,
        dropped_minute=dropped_minute,
        offsets=(submit, forwarded, outcomes),
        last_checkpoint=checkpoint.number,
        pieces={minute: count for minute, count in pieces.items() if minute >= kept_from},
        closed=frozenset(minute for minute in stored.closed.union(checkpoint.closed) if minute >= open_minute),
    )


def marks_to_write(after: Stored, new: Iterable[NewMarks]) -> dict[int, Marks]:
    """The new marks of minutes that are open after the checkpoint, joined by minute."""
    marks: dict[int, Marks] = {}
    for one in new:
        if one.minute >= after.open_minute and one.minute not in after.closed:
            journal = marks.setdefault(one.minute, Marks())
            journal.fired.update(one.fired)
            journal.removed.update(one.removed)
    return marks


class CassandraProgress:
    """The conditional half of the store. Made by `open`; used by one `CassandraStore`."""

    def __init__(self, connection: CassandraConnection, statements: dict[str, Any]) -> None:
        self._connection = connection
        self._statements = statements
        self._known: dict[int, Stored] = {}

    @classmethod
    async def open(cls, connection: CassandraConnection, keyspace: str) -> Self:
        table = f"{keyspace}.progress"
        of_shard = f"FROM {table} WHERE shard = ?"
        condition = "fence = ? AND submit_pos = ? AND forwarded_pos = ? AND outcomes_pos = ?"
        read = {
            "head": f"SELECT minute, n, {ENDS}, {HEAD} {of_shard} AND minute < 0",
            "near marks": f"SELECT minute, fired, removed, last_checkpoint {of_shard} AND minute >= ? AND minute <= ?",
        }
        other = {
            "marks": f"SELECT minute, fired, removed {of_shard} AND minute IN ?",
            "set up": f"INSERT INTO {table} (shard, minute, n, {ENDS}, {HEAD})"
            " VALUES (?, ?, 0, ?, ?, ?, 0, '', ?, ?, ?, ?, ?, -1, {}) IF NOT EXISTS",
            "claim": f"UPDATE {table} SET fence = ?, member = ? WHERE shard = ? IF {condition}",
            "reign": f"INSERT INTO {table} (shard, minute, n, {ENDS}) VALUES (?, ?, ?, ?, ?, ?)",
            "advance": f"UPDATE {table} SET open_minute = ?, dropped_minute = ?, submit_pos = ?, forwarded_pos = ?,"
            " outcomes_pos = ?, last_checkpoint = ?, pieces = ? WHERE shard = ? IF fence = ? AND last_checkpoint = ?",
            "mark": f"INSERT INTO {table} (shard, minute, n, fired, removed) VALUES (?, ?, ?, ?, ?)",
            "close": f"INSERT INTO {table} (shard, minute, n) VALUES (?, ?, ?)",
            "unmark": f"DELETE {of_shard} AND minute = ?",
            "unmark below": f"DELETE {of_shard} AND minute >= 0 AND minute < ?",
            "unclose below": f"DELETE {of_shard} AND minute = ? AND n < ?",
        }
        statements = {name: await connection.prepare(cql, serial=True) for name, cql in read.items()}
        statements |= {name: await connection.prepare(cql) for name, cql in other.items()}
        statements["near marks"].fetch_size = statements["marks"].fetch_size = FETCH_ROWS
        return cls(connection, statements)

    async def set_up(self, open_minute: int, offsets: Sequence[Offsets]) -> None:
        async def create(shard: int) -> None:
            starts = offsets[shard]
            values = (shard, REIGNS_AT, *starts, open_minute, open_minute - 1, *starts)
            await self._settled(self._statements["set up"].bind(values))

        await all_of(create, range(SHARDS))

    async def claim(self, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
        failure: UnknownOutcome | None = None
        for _ in range(ATTEMPTS):
            stored = await self._after(shard, failure)
            if (stored.fence, stored.member) == (fence, member):
                return await self._claimed(shard, fence, member, marks_up_to)
            if stored.fence >= fence:
                raise ClaimRefused(stored.fence)
            try:
                if await self._connection.write_if(self._claim(shard, stored, fence, member)):
                    return await self._claimed(shard, fence, member, marks_up_to)
            except UnknownOutcome as error:
                failure = error
        raise failure or NotApplied(f"shard {shard} is written to by others")

    async def record(self, shard: int, fence: int, checkpoint: Checkpoint) -> bool:
        """See the port. Numbers under one fence rise, and one is not left for the next before its answer is known."""
        stored = self._known.get(shard)
        if stored is None or stored.fence != fence:
            stored = await self._head(shard)
        failure: UnknownOutcome | None = None
        for _ in range(ATTEMPTS):
            if stored.fence == fence and stored.last_checkpoint >= checkpoint.number:
                return True
            if stored.fence != fence:
                return _found_refused(stored, checkpoint, failure)
            after = advanced(stored, checkpoint)
            try:
                if await self._connection.write_if(self._checkpoint(shard, stored, after, checkpoint)):
                    self._known[shard] = after
                    return True
            except UnknownOutcome as error:
                failure = error
            stored = await self._after(shard, failure)
        raise failure or NotApplied(f"shard {shard} is written to by others")

    async def progress(self, shard: int, marks_up_to: int) -> Progress:
        """What one moment shows: read again if a checkpoint came between the two slices."""
        for _ in range(ATTEMPTS):
            stored = await self._head(shard)
            if marks_up_to < stored.open_minute:
                return _told(shard, stored, {})
            near = self._statements["near marks"].bind((shard, stored.open_minute, marks_up_to))
            rows = await self._connection.read(near)
            if all(row[3] == stored.last_checkpoint for row in rows):
                break
        found = _gathered(row[:3] for row in rows if row[0] not in stored.closed)
        return _told(shard, stored, found)

    async def marks(self, shard: int, minutes: Sequence[int]) -> dict[int, Marks]:
        if not minutes:
            return {}
        rows = await self._connection.read(self._statements["marks"].bind((shard, list(minutes))))
        return _gathered(rows)

    async def pieces(self, shard: int) -> dict[int, int]:
        """The minutes of several pieces, as this process last knew them."""
        known = self._known.get(shard) or await self._head(shard)
        return known.pieces

    async def _claimed(self, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
        progress = await self.progress(shard, marks_up_to)
        if (progress.fence, progress.member) != (fence, member):
            raise ClaimRefused(progress.fence)
        return progress

    async def _head(self, shard: int) -> Stored:
        """A serial read: it sees, or ends, every conditional write before it."""
        rows = await self._connection.read(self._statements["head"].bind((shard,)))
        if not rows:
            self._known.pop(shard, None)
            raise NotApplied(f"shard {shard} was never set up")
        stored = _stored(rows)
        self._known[shard] = stored
        return stored

    async def _after(self, shard: int, failure: UnknownOutcome | None) -> Stored:
        """What stands after a try. If that can't be read, an unknown write stays unknown."""
        try:
            return await self._head(shard)
        except NotApplied as error:
            raise failure or error from error

    async def _settled(self, statement: Any) -> bool:
        """A conditional write that may be repeated as it is, until its outcome is known."""
        for _ in range(ATTEMPTS - 1):
            try:
                return await self._connection.write_if(statement)
            except UnknownOutcome:
                continue
        return await self._connection.write_if(statement)

    def _claim(self, shard: int, stored: Stored, fence: int, member: str) -> Any:
        """The condition names the ends that the reign row states (rule V)."""
        of = self._statements
        return conditional(
            [
                (of["claim"], (fence, member, shard, stored.fence, *stored.offsets)),
                (of["reign"], (shard, REIGNS_AT, stored.fence, *stored.offsets)),
            ]
        )

    def _checkpoint(self, shard: int, stored: Stored, after: Stored, checkpoint: Checkpoint) -> Any:
        of = self._statements
        grown = (after.open_minute, after.dropped_minute, *after.offsets, after.last_checkpoint, after.pieces)
        writes: list[Write] = [(of["advance"], (*grown, shard, stored.fence, stored.last_checkpoint))]
        for minute, new in marks_to_write(after, checkpoint.marks).items():
            blobs = pack_filings(new.fired), pack_filings(new.removed)
            writes.append((of["mark"], (shard, minute, checkpoint.number, *blobs)))
        for minute in after.closed - stored.closed:
            writes += (of["close"], (shard, CLOSED_AT, minute)), (of["unmark"], (shard, minute))
        if after.open_minute > stored.open_minute:
            writes.append((of["unmark below"], (shard, after.open_minute)))
        if stored.closed - after.closed:
            writes.append((of["unclose below"], (shard, CLOSED_AT, after.open_minute)))
        return conditional(writes)


def _found_refused(stored: Stored, checkpoint: Checkpoint, failure: UnknownOutcome | None) -> bool:
    """Another owner has the shard: was a write of unknown outcome done before? Its number tells, or a lower one."""
    if failure is None or stored.last_checkpoint < checkpoint.number:
        return False
    if stored.last_checkpoint == checkpoint.number:
        return True
    raise failure


def _stored(rows: Sequence[Row]) -> Stored:
    """Rows of (minute, n, three ends, the static columns), minutes below 0."""
    fence, member, open_minute, dropped_minute, submit, forwarded, outcomes, last, pieces = rows[0][5:]
    return Stored(
        fence,
        member,
        open_minute,
        dropped_minute,
        (submit, forwarded, outcomes),
        last,
        dict(pieces or {}),
        frozenset(row[1] for row in rows if row[0] == CLOSED_AT and row[1] >= open_minute),
        {row[1]: (row[2], row[3], row[4]) for row in rows if row[0] == REIGNS_AT},
    )


def _told(shard: int, stored: Stored, marks: dict[int, Marks]) -> Progress:
    return Progress(
        shard,
        stored.fence,
        stored.member,
        stored.open_minute,
        stored.dropped_minute,
        stored.offsets,
        stored.last_checkpoint,
        set(stored.closed),
        marks,
        dict(stored.pieces),
        dict(stored.reigns),
    )


def _gathered(rows: Iterable[Row]) -> dict[int, Marks]:
    """Rows of (minute, fired, removed)."""
    journals: dict[int, Marks] = {}
    for minute, fired, removed in rows:
        journal = journals.setdefault(minute, Marks())
        journal.fired.update(unpack_filings(fired))
        journal.removed.update(unpack_filings(removed))
    return journals
