"""How do partitioned logs lie in one SQLite file, and how does a process know what has moved in it?

All of it runs wherever the broker's `call` runs it: one call at a time, on one connection.

- `record`: one row a record, numbered `log << 40 | offset`. So a partition is one range of the table, an offset is
  found by one seek, and offsets are dense.
- `log`: one row a partition: start, end, the time of its last record, and the number of the change that moved it.
- `topic`: its partitions are the logs `base`, `base + 1` …; a deleted topic keeps its row, for its incarnation.
- `pulse`: one row; `moved` numbers the changes, `catalog` is the change that last touched the topics, `logs` the
  next log.
- the tables of the groups: see `sqlite_group`.

Every process keeps starts and ends in memory. `look` asks SQLite whether another connection has committed anything
(`PRAGMA data_version`: 4 µs, no read of the file), and only then reads the rows whose change is younger than the
last one seen. Every view and every change of the file looks first, so within them starts and ends are exact.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, TypeVarTuple

from ..store.errors import StoreError
from ..store.record import decode_headers
from ..store.sqlite_connection import Connection, Schema
from .errors import BrokerError, OffsetGone, Unpublishable
from .partitioner import murmur2
from .port import Bounds, Fetched, Produced
from .wire import Message, Record

T = TypeVar("T")
Args = TypeVarTuple("Args")
Db = sqlite3.Connection

OFFSET_BITS = 40
BYTES_A_FETCH = 16 * 1024 * 1024
RECORDS_A_CHANGE = 4_096
ROWS_A_TRIM = 4_096

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


Draft = tuple[Message, bytes | None]
"""A message that is fit to be written, and its headers in msgpack, None for none."""

Answer = Produced | BrokerError


@dataclass(slots=True, eq=False)
class Parcel:
    """What one call of `produce` wants written, and its answers once it is."""

    drafts: Sequence[Draft | Unpublishable]
    answers: list[Answer] | None = None
    withdrawn: bool = False

    def refuse(self, reason: str) -> None:
        self.answers = [draft if isinstance(draft, Unpublishable) else BrokerError(reason) for draft in self.drafts]


class LogFile:
    """The logs of one file. The verbs that take a `db` are run by `view` or `change`."""

    def __init__(self, connection: Connection, clock_ms: Callable[[], int]) -> None:
        self._connection = connection
        self.clock_ms = clock_ms
        self.topics: dict[str, list[Log]] = {}
        self.teams: dict[str, int] = {}
        self.catalog = -1
        # Ids of logs and names of teams that moved, until the waiting ones are woken; None stands for all.
        self.moved: deque[int | str | None] = deque()
        self.parcels: deque[Parcel] = deque()
        self._logs: dict[int, Log] = {}
        self._version = self._logs_seen = self._teams_seen = -1
        self._changed = False
        self._turn = 0

    def close(self) -> None:
        self._connection.close()

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
            self.look()
        return answer

    def next_change(self, db: Db) -> int:
        """The number of the change that is being made."""
        self._changed = True
        return _one(db, "UPDATE pulse SET moved = moved + 1 RETURNING moved")

    def known(self, topic: str, partition: int) -> Log | None:
        """A partition, if the last look saw it."""
        logs = self.topics.get(topic, ())
        return logs[partition] if 0 <= partition < len(logs) else None

    # ---- reading

    def read(self, db: Db, topic: str, partition: int, offset: int, limit: int) -> Fetched:
        log = self._log(topic, partition)
        if not log.start <= offset <= log.end:
            raise OffsetGone(f"{log.topic}/{log.partition} has {log.start} to {log.end}, not {offset}")
        records = self.records(db, log, offset, limit) if offset < log.end else []
        return Fetched(records, offset + len(records), log.end, log.incarnation)

    def records(self, db: Db, log: Log, offset: int, limit: int) -> list[Record]:
        """Up to `limit` records from an offset on, fewer when they are large."""
        records: list[Record] = []
        floor, topic, partition, size = log.floor, log.topic, log.partition, 0
        rows = db.execute(
            "SELECT at, time_ms, key, value, headers FROM record WHERE at >= ? AND at < ? ORDER BY at LIMIT ?",
            (floor + offset, floor + log.end, limit),
        )
        for at, time_ms, key, value, headers in rows:
            spread = decode_headers(headers) if headers else ()
            records.append(Record(topic, partition, at - floor, time_ms, key, value, spread))
            size += len(value or b"") + len(headers or b"")
            if size > BYTES_A_FETCH:
                rows.close()
                break
        return records

    def bounds(self, _: Db, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        logs = [self._log(topic, partition) for partition in partitions]
        return [Bounds(log.start, log.end, log.incarnation) for log in logs]

    def partitions(self, _: Db) -> dict[str, int]:
        return {topic: len(logs) for topic, logs in self.topics.items()}

    def _log(self, topic: str, partition: int) -> Log:
        log = self.known(topic, partition)
        if log is None:
            raise BrokerError(f"there is no partition {partition} of a topic {topic!r}")
        return log

    # ---- topics

    def create(self, db: Db, topics: Mapping[str, int]) -> None:
        missing = {name: partitions for name, partitions in topics.items() if name not in self.topics}
        if missing:
            change = self._catalog_change(db)
            for name, partitions in missing.items():
                base = _one(db, "UPDATE pulse SET logs = logs + ? RETURNING logs", partitions) - partitions
                db.execute(
                    "INSERT INTO topic VALUES (?1, ?2, ?3, 1) ON CONFLICT (name) DO UPDATE"
                    " SET base = ?2, partitions = ?3, incarnation = incarnation + 1",
                    (name, base, partitions),
                )
                logs = [(base + n, change) for n in range(partitions)]
                db.executemany("INSERT INTO log VALUES (?, 0, 0, 0, ?)", logs)

    def delete(self, db: Db, topic: str) -> None:
        if logs := self.topics.get(topic):
            first, last = logs[0].id, logs[-1].id
            places = (first << OFFSET_BITS, last + 1 << OFFSET_BITS)
            db.execute("DELETE FROM record WHERE at >= ? AND at < ?", places)
            db.execute("DELETE FROM log WHERE id BETWEEN ? AND ?", (first, last))
            db.execute("DELETE FROM holding WHERE topic = ?", (topic,))
            db.execute("DELETE FROM committed WHERE topic = ?", (topic,))
            db.execute("UPDATE topic SET partitions = 0 WHERE name = ?", (topic,))
            self._catalog_change(db)

    def trim(self, db: Db, topic: str, partition: int, before_ms: int) -> int:
        """Delete some of the partition's oldest records that are older, so few that no writer waits for long."""
        log = self._log(topic, partition)
        times = db.execute(
            "SELECT time_ms FROM record WHERE at >= ? AND at < ? ORDER BY at LIMIT ?",
            (log.floor + log.start, log.floor + log.end, ROWS_A_TRIM),
        ).fetchall()
        old = next((n for n, (time_ms,) in enumerate(times) if time_ms >= before_ms), len(times))
        if old:
            start = log.start + old
            db.execute("DELETE FROM record WHERE at >= ? AND at < ?", (log.floor, log.floor + start))
            db.execute('UPDATE log SET "start" = ?, moved = ? WHERE id = ?', (start, self.next_change(db), log.id))
        return old

    def _catalog_change(self, db: Db) -> int:
        change = self.next_change(db)
        db.execute("UPDATE pulse SET catalog = ?", (change,))
        return change

    # ---- writing

    def flush(self, parcel: Parcel) -> None:
        """Write this parcel, and with it, in the same change, what else has come to wait: one sync for all."""
        while parcel.answers is None and not parcel.withdrawn:
            self._flush_some()

    def _flush_some(self) -> None:
        taken: list[Parcel] = []

        def write(db: Db) -> list[list[Answer]]:
            self._take(taken)
            return self._append(db, taken)

        try:
            answers = self.change(write)
        except Exception as error:
            for parcel in taken:
                parcel.refuse(str(error))
            if not taken or not isinstance(error, StoreError):
                raise
        else:
            for parcel, its in zip(taken, answers, strict=True):
                parcel.answers = its

    def _take(self, taken: list[Parcel]) -> None:
        size = 0
        while self.parcels and size < RECORDS_A_CHANGE:
            parcel = self.parcels.popleft()
            if not parcel.withdrawn:
                taken.append(parcel)
                size += len(parcel.drafts)

    def _append(self, db: Db, parcels: Sequence[Parcel]) -> list[list[Answer]]:
        """Write the drafts at the ends of their logs."""
        now_ms = self.clock_ms()
        ends: dict[int, int] = {}
        rows: list[tuple[int, int, bytes | None, bytes | None, bytes | None]] = []

        def place(draft: Draft | Unpublishable) -> Answer:
            if isinstance(draft, Unpublishable):
                return draft
            message, headers = draft
            log = self._choose(message)
            if isinstance(log, Unpublishable):
                return log
            offset = ends.get(log.id, log.end)
            ends[log.id] = offset + 1
            time_ms = max(now_ms, log.time_ms)
            rows.append((log.floor + offset, time_ms, message.key, message.value, headers))
            return Produced(log.partition, offset, time_ms)

        answers = [[place(draft) for draft in parcel.drafts] for parcel in parcels]
        if rows:
            db.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?)", rows)
            change = self.next_change(db)
            db.executemany(
                'UPDATE log SET "end" = ?, time_ms = max(time_ms, ?), moved = ? WHERE id = ?',
                [(end, now_ms, change, number) for number, end in ends.items()],
            )
        return answers

    def _choose(self, message: Message) -> Log | Unpublishable:
        logs = self.topics.get(message.topic)
        if logs is None:
            return Unpublishable("no_such_topic", f"there is no topic {message.topic!r}")
        partition = message.partition
        if partition is None:
            partition = self._any_partition(message.key) % len(logs)
        elif not 0 <= partition < len(logs):
            return Unpublishable("no_such_topic", f"topic {message.topic!r} has no partition {partition}")
        return logs[partition]

    def _any_partition(self, key: bytes | None) -> int:
        if key is not None:
            return murmur2(key) & 0x7FFFFFFF
        self._turn += 1
        return self._turn

    # ---- what this process knows

    def _look(self, db: Db) -> None:
        version = _one(db, "PRAGMA data_version")
        if version == self._version:
            return
        catalog = _one(db, "SELECT catalog FROM pulse")
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


def _one(db: Db, sql: str, *values: object) -> int:
    number: int = db.execute(sql, values).fetchone()[0]
    return number
