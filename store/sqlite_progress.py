"""How does a shard's progress lie in SQLite, and what is each conditional write?

All functions run in a transaction of the caller's, which makes each of them the one conditional step of its name.
The condition is the stored fence and nothing else. Every part of a checkpoint is repeatable by itself (a mark row is
known by its number, what only grows is a maximum, a closed minute takes no marks), so a repeated or late one changes
nothing that is already so.

- `progress`: one row a shard. `mark`: one row a checkpoint and minute, the filings packed as in `pack_filings`.
- `closed`: minutes closed above the open one; at or below it they need no row. `piece`: minutes of several pieces,
  until they are dropped. `reign`: how far each earlier fence got in the logs.
"""

# ruff: noqa: S608 - statements are put together of constants; values are always bound

from collections.abc import Iterable, Sequence
from sqlite3 import Connection

import msgspec

from .errors import ClaimRefused, NotApplied
from .progress import Checkpoint, Marks, NewMarks, Offsets, Progress, pack_filings, unpack_filings

TABLES = """
CREATE TABLE progress (
    shard INTEGER PRIMARY KEY, fence INTEGER NOT NULL, member TEXT NOT NULL, open_minute INTEGER NOT NULL,
    dropped_minute INTEGER NOT NULL, submit_pos INTEGER NOT NULL, forwarded_pos INTEGER NOT NULL,
    outcomes_pos INTEGER NOT NULL, last_checkpoint INTEGER NOT NULL);
CREATE TABLE mark (
    shard INTEGER, minute INTEGER, number INTEGER, fired BLOB NOT NULL, removed BLOB NOT NULL,
    PRIMARY KEY (shard, minute, number));
CREATE TABLE closed (shard INTEGER, minute INTEGER, PRIMARY KEY (shard, minute)) WITHOUT ROWID;
CREATE TABLE piece (
    shard INTEGER, minute INTEGER, pieces INTEGER NOT NULL, PRIMARY KEY (shard, minute)) WITHOUT ROWID;
CREATE TABLE reign (
    shard INTEGER, fence INTEGER, submit_pos INTEGER NOT NULL, forwarded_pos INTEGER NOT NULL,
    outcomes_pos INTEGER NOT NULL, PRIMARY KEY (shard, fence)) WITHOUT ROWID"""

MARKS = "SELECT minute, fired, removed FROM mark WHERE shard = ?"


def set_up(db: Connection, open_minute: int, offsets: Sequence[Offsets]) -> None:
    db.executemany(
        "INSERT OR IGNORE INTO progress VALUES (?, 0, '', ?, ?, ?, ?, ?, -1)",
        [(shard, open_minute, open_minute - 1, *starts) for shard, starts in enumerate(offsets)],
    )


def claim(db: Connection, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
    stored = _stored(db, shard)
    if (stored.fence, stored.member) != (fence, member):
        if stored.fence >= fence:
            raise ClaimRefused(stored.fence)
        db.execute("INSERT INTO reign VALUES (?, ?, ?, ?, ?)", (shard, stored.fence, *stored.offsets))
        db.execute("UPDATE progress SET fence = ?, member = ? WHERE shard = ?", (fence, member, shard))
    return read(db, shard, marks_up_to)


def record(db: Connection, shard: int, fence: int, checkpoint: Checkpoint) -> bool:
    stored = _stored(db, shard)
    if stored.fence != fence:
        return False
    open_minute = max(stored.open_minute, checkpoint.open_minute)
    _mark(db, shard, checkpoint.number, [new for new in checkpoint.marks if new.minute >= open_minute])
    _close(db, shard, [minute for minute in checkpoint.closed if minute >= open_minute])
    _advance(db, shard, checkpoint)
    _forget(db, shard, open_minute, max(stored.dropped_minute, checkpoint.dropped_minute))
    return True


def read(db: Connection, shard: int, marks_up_to: int) -> Progress:
    progress = _stored(db, shard)
    lowest = (shard, progress.open_minute)
    closed = db.execute("SELECT minute FROM closed WHERE shard = ? AND minute >= ?", lowest)
    progress.closed = {minute for (minute,) in closed}
    progress.marks = _gathered(db.execute(f"{MARKS} AND minute BETWEEN ? AND ?", (*lowest, marks_up_to)))
    progress.pieces = dict(db.execute("SELECT minute, pieces FROM piece WHERE shard = ?", (shard,)))
    reigns = db.execute("SELECT fence, submit_pos, forwarded_pos, outcomes_pos FROM reign WHERE shard = ?", (shard,))
    progress.reigns = {fence: (submit, forwarded, outcomes) for fence, submit, forwarded, outcomes in reigns}
    return progress


def marks(db: Connection, shard: int, minutes: Sequence[int]) -> dict[int, Marks]:
    asked = msgspec.json.encode(minutes).decode()
    return _gathered(db.execute(f"{MARKS} AND minute IN (SELECT value FROM json_each(?))", (shard, asked)))


def _stored(db: Connection, shard: int) -> Progress:
    """The shard's one row."""
    row = db.execute("SELECT * FROM progress WHERE shard = ?", (shard,)).fetchone()
    if row is None:
        raise NotApplied(f"shard {shard} was never set up")
    _, fence, member, open_minute, dropped_minute, submit, forwarded, outcomes, last = row
    return Progress(shard, fence, member, open_minute, dropped_minute, (submit, forwarded, outcomes), last)


def _mark(db: Connection, shard: int, number: int, new: Iterable[NewMarks]) -> None:
    """Add mark rows, but to closed minutes."""
    db.executemany(
        "INSERT OR IGNORE INTO mark SELECT ?1, ?2, ?3, ?4, ?5"
        " WHERE NOT EXISTS (SELECT 1 FROM closed WHERE shard = ?1 AND minute = ?2)",
        [(shard, n.minute, number, pack_filings(n.fired), pack_filings(n.removed)) for n in new],
    )


def _close(db: Connection, shard: int, minutes: Iterable[int]) -> None:
    """Put a closed row in the place of each minute's marks."""
    of = [(shard, minute) for minute in minutes]
    db.executemany("DELETE FROM mark WHERE shard = ? AND minute = ?", of)
    db.executemany("INSERT OR IGNORE INTO closed VALUES (?, ?)", of)


def _advance(db: Connection, shard: int, checkpoint: Checkpoint) -> None:
    """Raise what only grows."""
    db.execute(
        "UPDATE progress SET open_minute = max(open_minute, ?), dropped_minute = max(dropped_minute, ?),"
        " submit_pos = max(submit_pos, ?), forwarded_pos = max(forwarded_pos, ?),"
        " outcomes_pos = max(outcomes_pos, ?), last_checkpoint = max(last_checkpoint, ?) WHERE shard = ?",
        (checkpoint.open_minute, checkpoint.dropped_minute, *checkpoint.offsets, checkpoint.number, shard),
    )
    db.executemany(
        "INSERT INTO piece VALUES (?, ?, ?)"
        " ON CONFLICT (shard, minute) DO UPDATE SET pieces = max(pieces, excluded.pieces)",
        [(shard, minute, pieces) for minute, pieces in checkpoint.pieces],
    )


def _forget(db: Connection, shard: int, open_minute: int, dropped_minute: int) -> None:
    """Minutes that the open one has passed need no rows, but for their pieces until they are dropped."""
    db.execute("DELETE FROM mark WHERE shard = ? AND minute < ?", (shard, open_minute))
    db.execute("DELETE FROM closed WHERE shard = ? AND minute < ?", (shard, open_minute))
    db.execute("DELETE FROM piece WHERE shard = ? AND minute < ?", (shard, min(open_minute, dropped_minute + 1)))


def _gathered(rows: Iterable[tuple[int, bytes, bytes]]) -> dict[int, Marks]:
    journals: dict[int, Marks] = {}
    for minute, fired, removed in rows:
        journal = journals.get(minute)
        if journal is None:
            journal = journals[minute] = Marks()
        journal.fired.update(unpack_filings(fired))
        journal.removed.update(unpack_filings(removed))
    return journals
