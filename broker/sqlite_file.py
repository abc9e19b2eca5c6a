"""How do several processes keep one SQLite file of logs, and how does each know what has moved in it?

All of it but `glance` runs wherever the broker's `call` runs it: one call at a time, on one connection.

- `record`: one row a record, numbered `log << 40 | offset`. So a partition is one range of the table, an offset is
  found by one seek, and offsets are dense.
- `log`: one row a partition: start, end, the time of its last record, and the number of the change that moved it.
- `topic`: its partitions are the logs `base`, `base + 1` …; a deleted topic keeps its row, for its incarnation.
- `pulse`: one row; `moved` numbers the changes, `catalog` is the change that last touched the topics, `logs` the
  next log.
- `team`, `member`, `holding`, `committed`: the groups, see `sqlite_group`.

Every process keeps starts and ends in memory. A look asks SQLite whether another connection has committed anything
(`PRAGMA data_version`: 4 µs, no read of the file), and only then reads the rows whose change is younger than the
last one seen. Every view and every change of the file looks first, so within them starts and ends are exact.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar, TypeVarTuple

from ..store.errors import StoreError
from ..store.sqlite_connection import Connection, Schema, Synchronous
from .errors import BrokerError

T = TypeVar("T")
Args = TypeVarTuple("Args")
Db = sqlite3.Connection

OFFSET_BITS = 40

SCHEMA = Schema(
    version=1,
    tables="""
CREATE TABLE pulse (
    one INTEGER PRIMARY KEY CHECK (one = 1), moved INTEGER NOT NULL, catalog INTEGER NOT NULL, logs INTEGER NOT NULL);
INSERT INTO pulse VALUES (1, 1, 1, 1);
CREATE TABLE topic (
    name TEXT PRIMARY KEY, base INTEGER NOT NULL, partitions INTEGER NOT NULL, incarnation INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE log (
    id INTEGER PRIMARY KEY, "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, time_ms INTEGER NOT NULL,
    moved INTEGER NOT NULL);
CREATE TABLE record (at INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB);
CREATE TABLE team (name TEXT PRIMARY KEY, moved INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE member (
    team TEXT, name TEXT, topics TEXT NOT NULL, heard_ms INTEGER NOT NULL, PRIMARY KEY (team, name)) WITHOUT ROWID;
CREATE TABLE holding (
    team TEXT, topic TEXT, partition INTEGER, member TEXT NOT NULL, PRIMARY KEY (team, topic, partition)
) WITHOUT ROWID;
CREATE TABLE committed (
    team TEXT, topic TEXT, partition INTEGER, "offset" INTEGER NOT NULL, PRIMARY KEY (team, topic, partition)
) WITHOUT ROWID""",
)


@dataclass(slots=True)
class Log:
    """One partition as this process knows it. `floor` is the number of its record 0."""

    id: int
    topic: str
    partition: int
    incarnation: int
    floor: int
    start: int = 0
    end: int = 0
    time_ms: int = 0


class LogFile:
    """One process's hold of the file. What takes a `db` is run by `view` or `change`."""

    def __init__(self, connection: Connection, beside: Db, clock_ms: Callable[[], int]) -> None:
        self._connection = connection
        self._beside = beside
        self.clock_ms = clock_ms
        self.topics: dict[str, list[Log]] = {}
        self.teams: dict[str, int] = {}
        self.catalog = -1
        # Ids of logs and names of teams that moved, until the waiting ones are woken; None stands for all.
        self.moved: deque[int | str | None] = deque()
        self._logs: dict[int, Log] = {}
        self._version = self._logs_seen = self._teams_seen = -1
        self._changed = False
        self._glanced = -1

    @classmethod
    def open(cls, path: str, clock_ms: Callable[[], int], synchronous: Synchronous, busy_ms: int) -> "LogFile":
        connection = Connection.open(path, SCHEMA, synchronous=synchronous, busy_timeout_ms=busy_ms)
        beside = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        file = cls(connection, beside, clock_ms)
        try:
            file.look()
        except BaseException:
            file.close()
            raise
        return file

    def close(self) -> None:
        self._beside.close()
        self._connection.close()

    def glance(self) -> bool:
        """Whether there may be something to see. Made to be asked often, and in the event loop's thread: it looks at
        memory that the processes share, takes 5 µs, and waits for nobody."""
        try:
            version = one(self._beside, "PRAGMA data_version")
        except sqlite3.Error:
            return True
        seen, self._glanced = self._glanced, version
        return version != seen

    def look(self) -> None:
        """Learn what other processes have committed."""
        self._connection.read(self._look)

    def view(self, verb: Callable[[Db, *Args], T], *args: *Args) -> T:
        """Read one unchanging state of the file."""

        def looked(db: Db) -> T:
            self._look(db)
            return verb(db, *args)

        return self._connection.read(looked)

    def change(self, verb: Callable[[Db, *Args], T], *args: *Args) -> T:
        """All of it or nothing, alone among the writers."""

        def looked(db: Db) -> T:
            self._look(db)
            return verb(db, *args)

        try:
            answer = self._connection.write(looked)
        except BaseException:
            # Done or not done, the file says: all is read again.
            self._version = self._logs_seen = self._teams_seen = self.catalog = -1
            self._changed = False
            raise
        if self._changed:
            # SQLite's version tells of the others' commits only.
            self._changed, self._version = False, -1
            with suppress(StoreError):
                # What is written stands, seen or not; the next look sees it.
                self.look()
        return answer

    def next_change(self, db: Db) -> int:
        """The number of the change that is being made."""
        self._changed = True
        return one(db, "UPDATE pulse SET moved = moved + 1 RETURNING moved")

    def known(self, topic: str, partition: int) -> Log | None:
        """A partition, if the last look saw it."""
        logs = self.topics.get(topic, ())
        return logs[partition] if 0 <= partition < len(logs) else None

    def log(self, topic: str, partition: int) -> Log:
        log = self.known(topic, partition)
        if log is None:
            raise BrokerError(f"there is no partition {partition} of a topic {topic!r}")
        return log

    # ---- what this process knows

    def _look(self, db: Db) -> None:
        version = one(db, "PRAGMA data_version")
        if version == self._version:
            return
        catalog = one(db, "SELECT catalog FROM pulse")
        if catalog != self.catalog:
            self._read_catalog(db, catalog)
        else:
            self._logs_seen = self._read_logs(db, self._logs, self._logs_seen)
        self._read_teams(db)
        self._version = version

    def _read_catalog(self, db: Db, catalog: int) -> None:
        """Read all anew, and show it only when it is whole: the event loop may look at it meanwhile."""
        topics: dict[str, list[Log]] = {}
        rows = db.execute("SELECT name, base, partitions, incarnation FROM topic WHERE partitions > 0")
        for name, base, partitions, incarnation in rows:
            topics[name] = [Log(base + n, name, n, incarnation, base + n << OFFSET_BITS) for n in range(partitions)]
        logs = {log.id: log for each in topics.values() for log in each}
        self._logs_seen = self._read_logs(db, logs, -1)
        self._logs, self.topics, self.catalog = logs, topics, catalog
        self.moved.append(None)

    def _read_logs(self, db: Db, logs: Mapping[int, Log], seen: int) -> int:
        moves = 'SELECT id, "start", "end", time_ms, moved FROM log WHERE moved > ?'
        for number, start, end, time_ms, moved in db.execute(moves, (seen,)):
            if log := logs.get(number):
                log.start, log.end, log.time_ms = start, end, time_ms
                self.moved.append(number)
            seen = max(seen, moved)
        return seen

    def _read_teams(self, db: Db) -> None:
        moves = "SELECT name, moved FROM team WHERE moved > ?"
        for name, moved in db.execute(moves, (self._teams_seen,)):
            self.teams[name] = moved
            self.moved.append(name)
            self._teams_seen = max(self._teams_seen, moved)


def one(db: Db, sql: str, *values: object) -> int:
    number: int = db.execute(sql, values).fetchone()[0]
    return number
