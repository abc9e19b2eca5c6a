"""Which filings have run, and who runs which? The embedded answer, in a file of its own: `ledger.sqlite`.

Two tables, as in the real one: `claim` is what is held or was let go unfinished, with its count of starts; `finished`
is final. A claim of a batch is one transaction. No row carries more time than it was told: a finished filing is as old
as the end of its claim's hold, or, if it was never claimed, as the end of its minute.
"""

# ruff: noqa: S608 - statements are put together of constants; values are always bound

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Self, TypeVar

import msgspec

from .port import ClaimAnswer, Finished, Granted, Held
from .sqlite_connection import BUSY_TIMEOUT_MS, Call, Connection, GroupCommit, Schema, Synchronous
from .task import MINUTE_MS

T = TypeVar("T")
Place = tuple[str, int, int]
"""What a batch has in common: (queue, shard, minute)."""

SCHEMA = Schema(
    1,
    """
CREATE TABLE claim (
    queue TEXT, shard INTEGER, minute INTEGER, filing INTEGER, holder TEXT NOT NULL, starts INTEGER NOT NULL,
    until_ms INTEGER NOT NULL, written_ms INTEGER NOT NULL, PRIMARY KEY (queue, shard, minute, filing)) WITHOUT ROWID;
CREATE TABLE finished (
    queue TEXT, shard INTEGER, minute INTEGER, filing INTEGER, written_ms INTEGER NOT NULL,
    PRIMARY KEY (queue, shard, minute, filing)) WITHOUT ROWID""",
)

OF_PLACE = "queue = ?1 AND shard = ?2 AND minute = ?3"
ASKED = f"{OF_PLACE} AND filing IN (SELECT value FROM json_each(?4))"
NOBODY = ""
"""The holder of a claim that was let go."""


class SqliteLedger:
    """The embedded `Ledger`. Several processes may have the same file open."""

    def __init__(self, connection: Connection, call: Call) -> None:
        self._connection = connection
        self._group = GroupCommit(connection, call)
        self._call = call

    @classmethod
    async def open(
        cls, path: str, call: Call, *, synchronous: Synchronous = "FULL", busy_timeout_ms: int = BUSY_TIMEOUT_MS
    ) -> Self:
        """Open or make the file; all work runs through `call`. Raise as `SqliteStore.open` does."""
        opening = partial(Connection.open, path, SCHEMA, synchronous=synchronous, busy_timeout_ms=busy_timeout_ms)
        return cls(await call(opening), call)

    async def close(self) -> None:
        """Close the file; whatever is called later is `NotApplied`."""
        await self._call(self._connection.close)

    async def claim(
        self, place: Place, filings: Sequence[int], holder: str, now_ms: int, until_ms: int
    ) -> list[ClaimAnswer]:
        return await self._write(_claim, place, filings, holder, now_ms, until_ms)

    async def renew(self, place: Place, filings: Sequence[int], holder: str, until_ms: int) -> list[int]:
        return await self._write(_renew, place, filings, holder, until_ms)

    async def finish(self, place: Place, filings: Sequence[int]) -> None:
        await self._write(_finish, place, filings)

    async def release(self, place: Place, filings: Sequence[int], holder: str, *, uncount: bool) -> None:
        await self._write(_release, place, filings, holder, uncount)

    async def running(self, now_ms: int) -> list[tuple[Place, int, str, int]]:
        return await self._call(lambda: self._connection.read(_running, now_ms))

    async def prune(self, before_ms: int) -> int:
        """Forget what was last written before then and is held no longer; the answer counts the rows.

        A filing that is forgotten would run again if it were delivered again.
        """
        return await self._write(_prune, before_ms)

    async def _write(self, work: Callable[..., T], *args: object) -> T:
        return await self._group.write(work, *args)


def _claim(
    db: sqlite3.Connection, place: Place, filings: Sequence[int], holder: str, now_ms: int, until_ms: int
) -> list[ClaimAnswer]:
    asked = (*place, _json(filings))
    finished = {filing for (filing,) in db.execute(f"SELECT filing FROM finished WHERE {ASKED}", asked)}
    found = db.execute(f"SELECT filing, holder, starts, until_ms FROM claim WHERE {ASKED}", asked)
    claims = {filing: (by, starts, until) for filing, by, starts, until in found}
    answers: list[ClaimAnswer] = []
    for filing in filings:
        by, starts, until = claims.get(filing, (NOBODY, 0, 0))
        if filing in finished:
            answers.append(Finished(filing))
        elif by not in {NOBODY, holder} and now_ms < until:
            answers.append(Held(filing, until))
        else:
            claims[filing] = (holder, starts + 1, until_ms)
            answers.append(Granted(filing, starts + 1))
    granted = {answer.filing: answer.starts for answer in answers if isinstance(answer, Granted)}
    db.executemany(
        "INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(*place, filing, holder, starts, until_ms, now_ms) for filing, starts in granted.items()],
    )
    return answers


def _renew(db: sqlite3.Connection, place: Place, filings: Sequence[int], holder: str, until_ms: int) -> list[int]:
    asked = (*place, _json(filings), holder)
    held = {filing for (filing,) in db.execute(f"SELECT filing FROM claim WHERE {ASKED} AND holder = ?5", asked)}
    db.execute(f"UPDATE claim SET until_ms = ?6 WHERE {ASKED} AND holder = ?5", (*asked, until_ms))
    return [filing for filing in filings if filing in held]


def _finish(db: sqlite3.Connection, place: Place, filings: Sequence[int]) -> None:
    asked = (*place, _json(filings))
    db.execute(
        "INSERT OR IGNORE INTO finished SELECT ?1, ?2, ?3, value, coalesce("
        f"(SELECT max(until_ms, written_ms) FROM claim WHERE {OF_PLACE} AND filing = value), ?5) FROM json_each(?4)",
        (*asked, (place[2] + 1) * MINUTE_MS),
    )
    db.execute(f"DELETE FROM claim WHERE {ASKED}", asked)


def _release(db: sqlite3.Connection, place: Place, filings: Sequence[int], holder: str, uncount: bool) -> None:  # noqa: FBT001 - the port's keyword, handed on
    db.execute(
        f"UPDATE claim SET holder = '{NOBODY}', until_ms = 0, starts = starts - ?6 WHERE {ASKED} AND holder = ?5",
        (*place, _json(filings), holder, int(uncount)),
    )


def _running(db: sqlite3.Connection, now_ms: int) -> list[tuple[Place, int, str, int]]:
    found = db.execute(
        "SELECT queue, shard, minute, filing, holder, starts FROM claim WHERE until_ms > ?"
        " ORDER BY queue, shard, minute, filing",
        (now_ms,),
    )
    return [((queue, shard, minute), filing, holder, starts) for queue, shard, minute, filing, holder, starts in found]


def _prune(db: sqlite3.Connection, before_ms: int) -> int:
    claims = db.execute("DELETE FROM claim WHERE max(until_ms, written_ms) < ?", (before_ms,)).rowcount
    return claims + db.execute("DELETE FROM finished WHERE written_ms < ?", (before_ms,)).rowcount


def _json(filings: Iterable[int]) -> str:
    return msgspec.json.encode(list(filings)).decode()
