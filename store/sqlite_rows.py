"""How do plain rows lie in SQLite, and which write of a key stands?

The later one by timestamp, whatever the order of arrival; of two writes with one timestamp the greater content, as
Cassandra has it, so that here too the order of arrival decides nothing. `dropped` keeps the timestamp of each
bucket's drop, which hides rows that land later as well; a row that it hides is not even written. No function here
knows of a fence. All of them run in a transaction of the caller's.
"""

# ruff: noqa: S608 - statements are put together of constants; values are always bound

from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any

import msgspec
from msgspec.structs import astuple

from .port import Place, Queue
from .position import POSITION_BITS
from .progress import Closing
from .task import BucketRow, DeadLetter, PlainRow, TaskRow

TABLES = """
CREATE TABLE bucket (
    shard INTEGER, minute INTEGER, piece INTEGER, due_ms INTEGER, filing INTEGER, timestamp INTEGER NOT NULL,
    record BLOB NOT NULL, PRIMARY KEY (shard, minute, piece, due_ms, filing)) WITHOUT ROWID;
CREATE TABLE dropped (
    shard INTEGER, minute INTEGER, piece INTEGER, timestamp INTEGER NOT NULL, seen_ms INTEGER,
    PRIMARY KEY (shard, minute, piece)) WITHOUT ROWID;
CREATE TABLE task (
    shard INTEGER, key TEXT, timestamp INTEGER NOT NULL, filing INTEGER NOT NULL, origin INTEGER NOT NULL,
    minute INTEGER NOT NULL, due_ms INTEGER NOT NULL, state TEXT NOT NULL, attempt INTEGER NOT NULL,
    queue TEXT NOT NULL, digest BLOB NOT NULL, submit_pos INTEGER NOT NULL, forwarded_pos INTEGER NOT NULL,
    outcome_pos INTEGER NOT NULL, forward_partition INTEGER NOT NULL, forward_pos INTEGER NOT NULL,
    answer TEXT NOT NULL, ended INTEGER NOT NULL, updated_ms INTEGER NOT NULL, note TEXT NOT NULL,
    PRIMARY KEY (shard, key)) WITHOUT ROWID;
CREATE TABLE dead_letter (
    shard INTEGER, key TEXT, timestamp INTEGER NOT NULL, filing INTEGER NOT NULL, queue TEXT NOT NULL,
    reason TEXT NOT NULL, attempts INTEGER NOT NULL, died_ms INTEGER NOT NULL, record BLOB NOT NULL,
    history TEXT NOT NULL, seen_ms INTEGER, PRIMARY KEY (shard, key)) WITHOUT ROWID;
CREATE TABLE closing (
    shard INTEGER, minute INTEGER, rows INTEGER NOT NULL, fired INTEGER NOT NULL, removed INTEGER NOT NULL,
    late INTEGER NOT NULL, digest BLOB NOT NULL, seen_ms INTEGER, PRIMARY KEY (shard, minute)) WITHOUT ROWID;
CREATE TABLE queue (name TEXT PRIMARY KEY, outcomes TEXT NOT NULL, note TEXT NOT NULL) WITHOUT ROWID"""

TASK = (
    "key, filing, origin, minute, due_ms, state, attempt, queue, digest, submit_pos, forwarded_pos, outcome_pos,"
    " forward_partition, forward_pos, answer, ended, updated_ms, note"
)
LETTER = "key, filing, queue, reason, attempts, died_ms, record, history"
BUCKET_KEY = "minute, piece, due_ms, filing"
FINAL = "('done', 'cancelled', 'expired', 'dead')"


def _put(table: str, key: str, content: str, *, reset: str = "") -> str:
    """The statement that writes a row unless the one that stands is greater, by timestamp and then by content."""
    names = [name.strip() for name in f"{key}, {content}".split(",")]
    values = [name.strip() for name in f"timestamp, {content}".split(",")]
    new = [f"excluded.{name}" for name in values]
    changes = ", ".join(f"{name} = excluded.{name}" for name in values)
    return (
        f"INSERT INTO {table} (shard, timestamp, {', '.join(names)}) VALUES (?, ?{', ?' * len(names)})"
        f" ON CONFLICT (shard, {key}) DO UPDATE SET {changes}{reset}"
        f" WHERE ({', '.join(new)}) > ({', '.join(values)})"
    )


PUT_BUCKET = _put("bucket", BUCKET_KEY, "record")
PUT_TASK = _put("task", "key", TASK.removeprefix("key, "))
PUT_LETTER = _put("dead_letter", "key", LETTER.removeprefix("key, "), reset=", seen_ms = NULL")


def write(db: Connection, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
    _write_buckets(db, shard, timestamp, [row for row in rows if isinstance(row, BucketRow)])
    db.executemany(PUT_TASK, [(shard, timestamp, *_flat(row)) for row in rows if isinstance(row, TaskRow)])
    db.executemany(PUT_LETTER, [(shard, timestamp, *astuple(row)) for row in rows if isinstance(row, DeadLetter)])


def _write_buckets(db: Connection, shard: int, timestamp: int, rows: Sequence[BucketRow]) -> None:
    """Write what no drop hides."""
    if not rows:
        return
    minutes = {row.minute for row in rows}
    hidden = set(
        db.execute(
            "SELECT minute, piece FROM dropped WHERE shard = ? AND minute BETWEEN ? AND ? AND timestamp >= ?",
            (shard, min(minutes), max(minutes), timestamp),
        )
    )
    if hidden:
        rows = [row for row in rows if (row.minute, row.piece) not in hidden]
    db.executemany(PUT_BUCKET, [(shard, timestamp, *astuple(row)) for row in rows])


def _flat(row: TaskRow) -> tuple[Any, ...]:
    """The row's columns: `forward_origin` has 67 bits and fills two."""
    fields = astuple(row)
    return *fields[:12], *divmod(row.forward_origin, 1 << POSITION_BITS), *fields[13:]


def tasks(db: Connection, shard: int, keys: Sequence[str]) -> list[TaskRow]:
    found = db.execute(
        f"SELECT {TASK} FROM task WHERE shard = ? AND key IN (SELECT value FROM json_each(?))",
        (shard, msgspec.json.encode(keys).decode()),
    )
    return [TaskRow(*_fields(row)) for row in found]


def _fields(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """`_flat` undone."""
    return *row[:12], row[12] << POSITION_BITS | row[13], row[14], row[15] == 1, *row[16:]


def page(db: Connection, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
    found = db.execute(
        "SELECT due_ms, filing, record FROM bucket WHERE shard = ? AND minute = ? AND piece = ?"
        " AND (due_ms, filing) > (?, ?) ORDER BY due_ms, filing LIMIT ?",
        (shard, minute, piece, *after, limit),
    )
    return [BucketRow(minute, piece, due_ms, filing, record) for due_ms, filing, record in found]


def filings(db: Connection, shard: int, places: Sequence[Place]) -> list[BucketRow]:
    tops = db.execute(
        "SELECT value, (SELECT max(piece) FROM bucket WHERE shard = ? AND minute = value) FROM json_each(?)",
        (shard, msgspec.json.encode({minute for minute, _, _ in places}).decode()),
    )
    pieces = {minute: range(top + 1) for minute, top in tops if top is not None}
    seeks = [(minute, piece, due, filing) for minute, due, filing in places for piece in pieces.get(minute, ())]
    found = db.execute(
        "SELECT b.minute, b.piece, b.due_ms, b.filing, b.record FROM json_each(?) AS seek CROSS JOIN bucket AS b"
        " ON b.shard = ? AND b.minute = json_extract(seek.value, '$[0]') AND b.piece = json_extract(seek.value, '$[1]')"
        " AND b.due_ms = json_extract(seek.value, '$[2]') AND b.filing = json_extract(seek.value, '$[3]')",
        (msgspec.json.encode(seeks).decode(), shard),
    )
    return [BucketRow(*row) for row in found]


def drop(db: Connection, shard: int, minute: int, pieces: int, timestamp: int) -> None:
    db.executemany(
        "INSERT INTO dropped VALUES (?, ?, ?, ?, NULL) ON CONFLICT (shard, minute, piece) DO UPDATE"
        " SET timestamp = excluded.timestamp, seen_ms = NULL WHERE excluded.timestamp > timestamp",
        [(shard, minute, piece, timestamp) for piece in range(pieces)],
    )
    db.execute(
        "DELETE FROM bucket WHERE shard = ? AND minute = ? AND piece BETWEEN 0 AND ? AND timestamp <= ?",
        (shard, minute, pieces - 1, timestamp),
    )


def put_closing(db: Connection, shard: int, closing: Closing) -> None:
    counts = astuple(closing)[:-1]
    digest = closing.digest.to_bytes(8, "big")
    db.execute("INSERT OR REPLACE INTO closing VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", (shard, *counts, digest))


def closing(db: Connection, shard: int, minute: int) -> Closing | None:
    row = db.execute(
        "SELECT minute, rows, fired, removed, late, digest FROM closing WHERE shard = ? AND minute = ?", (shard, minute)
    ).fetchone()
    if row is None:
        return None
    minute, rows, fired, removed, late, digest = row
    return Closing(minute, rows, fired, removed, late, int.from_bytes(digest, "big"))


def letters(db: Connection, shard: int, keys: Sequence[str]) -> list[DeadLetter]:
    found = db.execute(
        f"SELECT {LETTER} FROM dead_letter WHERE shard = ? AND record != x''"
        " AND key IN (SELECT value FROM json_each(?))",
        (shard, msgspec.json.encode(keys).decode()),
    )
    return [DeadLetter(*row) for row in found]


def dead_letters(db: Connection, shard: int, after: str, limit: int) -> list[DeadLetter]:
    found = db.execute(
        f"SELECT {LETTER} FROM dead_letter WHERE shard = ? AND key > ? AND record != x'' ORDER BY key LIMIT ?",
        (shard, after, limit),
    )
    return [DeadLetter(*row) for row in found]


def put_queue(db: Connection, queue: Queue) -> None:
    db.execute("INSERT OR REPLACE INTO queue VALUES (?, ?, ?)", astuple(queue))


def queues(db: Connection) -> list[Queue]:
    return [Queue(*row) for row in db.execute("SELECT name, outcomes, note FROM queue ORDER BY name")]


def prune(db: Connection, shard: int, now_ms: int, retention_ms: int) -> int:
    """Delete what is past its retention; the answer counts the rows.

    Tasks count from their last change. What hides or replaces other rows (drops, settled letters) and closing records
    carry no time of their own: they count from the first pruning that sees them.
    """
    before_ms = now_ms - retention_ms
    removed = db.execute(
        f"DELETE FROM task WHERE shard = ?1 AND state IN {FINAL} AND updated_ms < ?2 AND NOT (state = 'dead'"
        " AND EXISTS (SELECT 1 FROM dead_letter AS d WHERE d.shard = ?1 AND d.key = task.key AND d.record != x''))",
        (shard, before_ms),
    ).rowcount
    for table, which in (("dropped", ""), ("closing", ""), ("dead_letter", " AND record = x''")):
        db.execute(f"UPDATE {table} SET seen_ms = ? WHERE shard = ? AND seen_ms IS NULL{which}", (now_ms, shard))
        removed += db.execute(f"DELETE FROM {table} WHERE shard = ? AND seen_ms < ?", (shard, before_ms)).rowcount
    return removed
