"""How are records written to the logs of the file, read, and deleted?

The verbs that take a `db` are run by the file's `view` or `change`; `flush` makes changes itself. Writers that come
while another write is under way are written together by the next, so that one sync serves them all.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..store.errors import StoreError
from ..store.record import decode_headers
from .errors import BrokerError, OffsetGone, Unpublishable
from .partitioner import murmur2
from .port import Bounds, Fetched, Produced
from .sqlite_file import OFFSET_BITS, Db, Log, LogFile, one
from .wire import Message, Record

BYTES_A_FETCH = 16 * 1024 * 1024
# A change holds up the writers of all processes: 5 to 15 ms for so many.
RECORDS_A_CHANGE = 1_024
ROWS_A_TRIM = 4_096

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


class Logs:
    """The logs of one file."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.parcels: deque[Parcel] = deque()
        self._turn = 0

    # ---- reading

    def read(self, db: Db, topic: str, partition: int, offset: int, limit: int) -> Fetched:
        log = self._file.log(topic, partition)
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
        logs = [self._file.log(topic, partition) for partition in partitions]
        return [Bounds(log.start, log.end, log.incarnation) for log in logs]

    def partitions(self, _: Db) -> dict[str, int]:
        return {topic: len(logs) for topic, logs in self._file.topics.items()}

    # ---- topics

    def create(self, db: Db, topics: Mapping[str, int]) -> None:
        missing = {name: partitions for name, partitions in topics.items() if name not in self._file.topics}
        if missing:
            change = self._catalog_change(db)
            for name, partitions in missing.items():
                base = one(db, "UPDATE pulse SET logs = logs + ? RETURNING logs", partitions) - partitions
                db.execute(
                    "INSERT INTO topic VALUES (?1, ?2, ?3, 1) ON CONFLICT (name) DO UPDATE"
                    " SET base = ?2, partitions = ?3, incarnation = incarnation + 1",
                    (name, base, partitions),
                )
                logs = [(base + n, change) for n in range(partitions)]
                db.executemany("INSERT INTO log VALUES (?, 0, 0, 0, ?)", logs)

    def delete(self, db: Db, topic: str) -> None:
        if logs := self._file.topics.get(topic):
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
        log = self._file.log(topic, partition)
        times = db.execute(
            "SELECT time_ms FROM record WHERE at >= ? AND at < ? ORDER BY at LIMIT ?",
            (log.floor + log.start, log.floor + log.end, ROWS_A_TRIM),
        ).fetchall()
        old = next((n for n, (time_ms,) in enumerate(times) if time_ms >= before_ms), len(times))
        if old:
            start = log.start + old
            db.execute("DELETE FROM record WHERE at >= ? AND at < ?", (log.floor, log.floor + start))
            db.execute(
                'UPDATE log SET "start" = ?, moved = ? WHERE id = ?', (start, self._file.next_change(db), log.id)
            )
        return old

    def _catalog_change(self, db: Db) -> int:
        change = self._file.next_change(db)
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
            answers = self._file.change(write)
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
        now_ms = self._file.clock_ms()
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
            change = self._file.next_change(db)
            db.executemany(
                'UPDATE log SET "end" = ?, time_ms = max(time_ms, ?), moved = ? WHERE id = ?',
                [(end, now_ms, change, number) for number, end in ends.items()],
            )
        return answers

    def _choose(self, message: Message) -> Log | Unpublishable:
        logs = self._file.topics.get(message.topic)
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
