"""How do plain rows lie in Cassandra, and how are many of them written and read at once?

Every write carries its owner's timestamp; of two writes of a cell the higher one stands, and a bucket's drop is a
partition delete with a timestamp too. No statement here has a condition, and none touches the progress table. What is
asked for at once is grouped by partition and sent side by side.

Final task rows, settled letters and closing records carry a TTL; 0 keeps them. A dead task's row has none while its
letter can be redriven: the write that settles the letter writes the row again, as it is, with one.
"""

# ruff: noqa: S608 - statements are put together of constants and a checked keyspace name; values are always bound

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeVar
from zlib import crc32

from msgspec import Struct

from .cassandra_bridge import CassandraConnection, Row, all_of
from .cassandra_errors import worst
from .cassandra_statements import (
    BYTES_MAX,
    ROWS_MAX,
    batch,
    bigint_value,
    boolean_value,
    chunks,
    int_value,
    list_value,
    packed,
    pair_value,
    smallint_value,
    text_value,
)
from .errors import NotApplied
from .port import Place, Queue
from .position import POSITION_BITS
from .progress import Closing
from .task import BucketRow, DeadLetter, PlainRow, TaskRow

T = TypeVar("T")
K = TypeVar("K")

KEYS_MAX = 100
"""Keys or places that one read names."""
PIECES_PROBED = 8
"""Pieces in which a filing is looked for at least."""
PAGE_BYTES = 4 << 20
"""What a page of rows should come to; its rows follow from the sizes of those read before."""
PAGE_ROWS_MIN, PAGE_ROWS_MAX = 50, 5_000
LETTERS_A_PAGE = 50
PARTITIONS_MAX = 8
JOINED_BYTES_MAX = 4 << 10
"""What one statement may put into several partitions: below where the server warns of it (10, and 5 KiB)."""
DAY_MINUTES = 1_440
U64 = 1 << 64

TASK = (
    "key, filing, origin, minute, due_ms, state, attempt, queue, digest, submit_pos, forwarded_pos, outcome_pos,"
    " forward_partition, forward_pos, answer, ended, updated_ms, note"
)
LETTER = "key, filing, queue, reason, attempts, died_ms, record, history"
FINAL = frozenset({"done", "cancelled", "expired"})


class Keep(Struct, frozen=True):
    """How long, in seconds, what is over stays: final task rows and settled letters, closing records. 0: for ever."""

    tasks_s: int = 7 * 86_400
    closings_s: int = 30 * 86_400


def part_of(key: str, parts: int) -> int:
    """The group of a key's row in its shard; the hash has nothing in common with the one that gives the shard."""
    return crc32(key.encode()) % parts


class CassandraRows:
    """The plain half of the store. Made by `open`; used by one `CassandraStore`."""

    def __init__(self, connection: CassandraConnection, statements: dict[str, Any], parts: int, keep: Keep) -> None:
        self._connection = connection
        self._statements = statements
        self._parts = parts
        self._keep = keep
        self._page_rows = PAGE_ROWS_MIN * 10

    @classmethod
    async def open(cls, connection: CassandraConnection, keyspace: str, parts: int, keep: Keep) -> Self:
        marked = "USING TIMESTAMP ?"
        of_bucket = "minute = ? AND shard = ? AND piece"
        letters = f"SELECT {LETTER} FROM {keyspace}.dead_letter WHERE shard = ?"
        statements = {
            "put bucket": f"INSERT INTO {keyspace}.bucket (minute, shard, piece, due_ms, filing, record)"
            f" VALUES (?, ?, ?, ?, ?, ?) {marked}",
            "put task": f"INSERT INTO {keyspace}.task (shard, part, {TASK}) VALUES (?{', ?' * 19}) {marked} AND TTL ?",
            "put letter": f"INSERT INTO {keyspace}.dead_letter (shard, {LETTER})"
            f" VALUES (?{', ?' * 8}) {marked} AND TTL ?",
            "tasks": f"SELECT {TASK} FROM {keyspace}.task WHERE shard = ? AND part = ? AND key IN ?",
            "page": f"SELECT due_ms, filing, record FROM {keyspace}.bucket WHERE {of_bucket} = ?"
            " AND (due_ms, filing) > (?, ?)",
            "filings": f"SELECT minute, piece, due_ms, filing, record FROM {keyspace}.bucket WHERE {of_bucket} IN ?"
            " AND (due_ms, filing) IN ?",
            "drop": f"DELETE FROM {keyspace}.bucket {marked} WHERE {of_bucket} = ?",
            "letters": f"{letters} AND key IN ?",
            "letters after": f"{letters} AND key > ?",
            "put closing": f"INSERT INTO {keyspace}.closing (shard, day, minute, rows, fired, removed, late, digest)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?",
            "closing": f"SELECT minute, rows, fired, removed, late, digest FROM {keyspace}.closing"
            " WHERE shard = ? AND day = ? AND minute = ?",
            "put queue": f"INSERT INTO {keyspace}.queue (fleet, name, outcomes, note) VALUES (0, ?, ?, ?)",
            "queues": f"SELECT name, outcomes, note FROM {keyspace}.queue WHERE fleet = 0",
        }
        prepared = {name: await connection.prepare(cql) for name, cql in statements.items()}
        prepared["letters after"].fetch_size = LETTERS_A_PAGE
        return cls(connection, prepared, parts, keep)

    async def write(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
        buckets = [row for row in rows if isinstance(row, BucketRow)]
        letters = [row for row in rows if isinstance(row, DeadLetter)]
        tasks = [(row, self._ttl_s(row)) for row in rows if isinstance(row, TaskRow)]
        await self._put(
            [
                *_bucket_chunks(shard, timestamp, buckets),
                *self._task_chunks(shard, timestamp, tasks),
                *_put_chunks("put letter", self._letters_packer(shard, timestamp), [letters], _letter_size),
            ]
        )
        await self._let_go(shard, timestamp, [letter.key for letter in letters if not letter.record])

    async def tasks(self, shard: int, keys: Sequence[str]) -> list[TaskRow]:
        by_part = _grouped(dict.fromkeys(keys), lambda key: part_of(key, self._parts))
        asked = [(part, some) for part, group in by_part.items() for some in _runs(group, KEYS_MAX)]

        async def ask(one: tuple[int, Sequence[str]]) -> list[Row]:
            part, some = one
            names = list_value([key.encode() for key in some])
            values = [smallint_value(shard), smallint_value(part), names]
            return await self._connection.read(packed(self._statements["tasks"], values))

        return [TaskRow(*_fields(row)) for rows in await all_of(ask, asked) for row in rows]

    async def page(self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        """The number of rows is bounded by the fetch size alone: a server that is asked with a LIMIT not above the
        fetch size forgets the paging state, and begins anew."""
        due_ms, filing = after
        place = [bigint_value(minute), smallint_value(shard), smallint_value(piece)]
        values = [*place, bigint_value(due_ms), bigint_value(filing)]
        rows: list[BucketRow] = []
        paging_state: bytes | None = None
        while len(rows) < limit:
            asked = packed(self._statements["page"], values, fetch_size=min(limit - len(rows), self._page_rows))
            found, paging_state = await self._connection.page(asked, paging_state)
            rows += [BucketRow(minute, piece, *row) for row in found]
            self._page_rows = _rows_a_page(found, self._page_rows)
            if paging_state is None:
                break
        return rows

    async def filings(self, shard: int, places: Sequence[Place], pieces: dict[int, int]) -> list[BucketRow]:
        """In all pieces that the minute may have: an owner's row may stand in another one than a stale owner's."""
        by_minute = _grouped(places, lambda place: place[0])
        asked = [(minute, some) for minute, group in by_minute.items() for some in _runs(group, KEYS_MAX)]

        async def ask(one: tuple[int, Sequence[Place]]) -> list[Row]:
            minute, some = one
            numbers = range(max(PIECES_PROBED, pieces.get(minute, 1)))
            pairs = list_value([pair_value(due_ms, filing) for _, due_ms, filing in some])
            place = [bigint_value(minute), smallint_value(shard), list_value([smallint_value(n) for n in numbers])]
            return await self._connection.read(packed(self._statements["filings"], [*place, pairs]))

        return [BucketRow(*row) for rows in await all_of(ask, asked) for row in rows]

    async def drop(self, shard: int, minute: int, pieces: int, timestamp: int) -> None:
        async def drop(piece: int) -> None:
            place = [bigint_value(minute), smallint_value(shard), smallint_value(piece)]
            await self._connection.write(packed(self._statements["drop"], [bigint_value(timestamp), *place]))

        await all_of(drop, range(pieces))

    async def put_closing(self, shard: int, closing: Closing) -> None:
        day, signed = closing.minute // DAY_MINUTES, (closing.digest + U64 // 2) % U64 - U64 // 2
        counts = (closing.minute, closing.rows, closing.fired, closing.removed, closing.late, signed)
        values = (shard, day, *counts, self._keep.closings_s)
        await self._connection.write(self._statements["put closing"].bind(values))

    async def closing(self, shard: int, minute: int) -> Closing | None:
        asked = self._statements["closing"].bind((shard, minute // DAY_MINUTES, minute))
        for _, rows, fired, removed, late, digest in await self._connection.read(asked):
            return Closing(minute, rows, fired, removed, late, digest % U64)
        return None

    async def letters(self, shard: int, keys: Sequence[str]) -> list[DeadLetter]:
        async def ask(some: Sequence[str]) -> list[Row]:
            values = [smallint_value(shard), list_value([key.encode() for key in some])]
            return await self._connection.read(packed(self._statements["letters"], values))

        answers = await all_of(ask, list(_runs(list(dict.fromkeys(keys)), KEYS_MAX)))
        return [letter for rows in answers for letter in _with_record(rows)]

    async def dead_letters(self, shard: int, after: str, limit: int) -> list[DeadLetter]:
        statement = self._statements["letters after"].bind((shard, after))
        rows, paging_state = await self._connection.page(statement)
        letters = _with_record(rows)
        while len(letters) < limit and paging_state is not None:
            rows, paging_state = await self._connection.page(statement, paging_state)
            letters += _with_record(rows)
        return letters[:limit]

    async def put_queue(self, queue: Queue) -> None:
        values = (queue.name, queue.outcomes, queue.note)
        await self._connection.write(self._statements["put queue"].bind(values))

    async def queues(self) -> list[Queue]:
        return [Queue(*row) for row in await self._connection.read(self._statements["queues"].bind(()))]

    def _ttl_s(self, row: TaskRow) -> int:
        return self._keep.tasks_s if row.state in FINAL else 0

    def _task_chunks(self, shard: int, timestamp: int, tasks: Sequence[tuple[TaskRow, int]]) -> "list[_Chunk]":
        """Statements for task rows, each with the seconds that it is to live."""
        placed = [(part_of(row.key, self._parts), row, ttl_s) for row, ttl_s in tasks]
        by_part = _grouped(placed, lambda task: task[0])
        return _joined_chunks("put task", _tasks_packer(shard, timestamp), list(by_part.values()), _task_size)

    def _letters_packer(self, shard: int, timestamp: int) -> Callable[[DeadLetter], list[bytes]]:
        of_shard, at, live, settled = (
            smallint_value(shard),
            bigint_value(timestamp),
            int_value(0),
            int_value(self._keep.tasks_s),
        )
        return lambda letter: [of_shard, *_letter_values(letter), at, live if letter.record else settled]

    async def _put(self, chunks_: "Sequence[_Chunk]") -> None:
        async def put(chunk: "_Chunk") -> None:
            name, pack, rows, joined = chunk
            try:
                await self._connection.write(batch(self._statements[name], [pack(row) for row in rows]))
            except NotApplied as error:
                raise worst([error], any_done=joined) from error

        await all_of(put, chunks_)

    async def _let_go(self, shard: int, timestamp: int, settled: Sequence[str]) -> None:
        """Give the rows of dead tasks a TTL: their letters are settled."""
        if settled and self._keep.tasks_s:
            dead = [row for row in await self.tasks(shard, settled) if row.state == "dead"]
            await self._put(self._task_chunks(shard, timestamp, [(row, self._keep.tasks_s) for row in dead]))


_Chunk = tuple[str, Callable[[Any], list[bytes]], Sequence[Any], bool]
"""One statement to be: its name, what packs a row, the rows, and are they of several partitions. Packed only when its
turn comes, so that a large write leaves the loop free between its statements."""

_PlacedTask = tuple[int, TaskRow, int]
"""A task row between its part and the seconds that it is to live."""


def _put_chunks(
    name: str, pack: Callable[[T], list[bytes]], groups: Iterable[Sequence[T]], size: Callable[[T], int]
) -> list[_Chunk]:
    """Statements for groups of rows, a partition each."""
    return [
        (name, pack, some, False)
        for group in groups
        for some in chunks(group, [size(row) for row in group], ROWS_MAX, BYTES_MAX)
    ]


def _bucket_chunks(shard: int, timestamp: int, rows: Sequence[BucketRow]) -> list[_Chunk]:
    groups = list(_grouped(rows, lambda row: (row.minute, row.piece)).values())
    return _joined_chunks("put bucket", _buckets_packer(shard, timestamp), groups, _bucket_size)


def _joined_chunks(
    name: str, pack: Callable[[T], list[bytes]], groups: Sequence[Sequence[T]], size: Callable[[T], int]
) -> list[_Chunk]:
    """As `_put_chunks`, but small rows that are alone in their partition share a statement: it costs as much as ten."""
    alone = [group[0] for group in groups if len(group) == 1]
    joined = chunks(alone, [size(row) for row in alone], PARTITIONS_MAX, JOINED_BYTES_MAX)
    some = _put_chunks(name, pack, [group for group in groups if len(group) > 1], size)
    return some + [(name, pack, run, len(run) > 1) for run in joined]


def _grouped(rows: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def _runs(items: Sequence[T], length: int) -> Iterable[Sequence[T]]:
    return (items[at : at + length] for at in range(0, len(items), length))


def _rows_a_page(found: Sequence[Row], before: int) -> int:
    if not found:
        return before
    mean = sum(len(row[2]) for row in found) // len(found) + 50
    return max(PAGE_ROWS_MIN, min(PAGE_ROWS_MAX, PAGE_BYTES // mean))


def _bucket_size(row: BucketRow) -> int:
    return len(row.record) + 100


def _task_size(task: _PlacedTask) -> int:
    _, row, _ = task
    return len(row.digest) + 4 * (len(row.key) + len(row.answer) + len(row.note)) + 300


def _letter_size(letter: DeadLetter) -> int:
    return len(letter.record) + 4 * (len(letter.key) + len(letter.history) + len(letter.reason)) + 200


def _buckets_packer(shard: int, timestamp: int) -> Callable[[BucketRow], list[bytes]]:
    of_shard, at = smallint_value(shard), bigint_value(timestamp)
    return lambda row: [
        bigint_value(row.minute),
        of_shard,
        smallint_value(row.piece),
        bigint_value(row.due_ms),
        bigint_value(row.filing),
        row.record,
        at,
    ]


def _tasks_packer(shard: int, timestamp: int) -> Callable[[_PlacedTask], list[bytes]]:
    of_shard, at = smallint_value(shard), bigint_value(timestamp)

    def pack(task: _PlacedTask) -> list[bytes]:
        part, row, ttl_s = task
        return [of_shard, smallint_value(part), *_task_values(row), at, int_value(ttl_s)]

    return pack


def _task_values(row: TaskRow) -> tuple[bytes, ...]:
    """The columns of `TASK`: `forward_origin` has 67 bits and fills two."""
    partition, position = divmod(row.forward_origin, 1 << POSITION_BITS)
    return (
        text_value(row.key),
        bigint_value(row.filing),
        bigint_value(row.origin),
        bigint_value(row.minute),
        bigint_value(row.due_ms),
        text_value(row.state),
        int_value(row.attempt),
        text_value(row.queue),
        row.digest,
        bigint_value(row.submit_pos),
        bigint_value(row.forwarded_pos),
        bigint_value(row.outcome_pos),
        bigint_value(partition),
        bigint_value(position),
        text_value(row.answer),
        boolean_value(value=row.ended),
        bigint_value(row.updated_ms),
        text_value(row.note),
    )


def _fields(row: Row) -> Row:
    """The fields of a `TaskRow` from the columns of `TASK`."""
    return *row[:12], row[12] << POSITION_BITS | row[13], *row[14:]


def _letter_values(letter: DeadLetter) -> tuple[bytes, ...]:
    """The columns of `LETTER`."""
    return (
        text_value(letter.key),
        bigint_value(letter.filing),
        text_value(letter.queue),
        text_value(letter.reason),
        int_value(letter.attempts),
        bigint_value(letter.died_ms),
        letter.record,
        text_value(letter.history),
    )


def _with_record(rows: Sequence[Row]) -> list[DeadLetter]:
    return [DeadLetter(*row) for row in rows if row[6]]
