"""On what do members stand? The real embedded twins in memory, watched, and a coordinator, all on one virtual clock."""

from collections.abc import Callable

from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Topics
from minutewheel.coordinator import LocalCoordinator
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.leasing import Leasing
from minutewheel.dispatcher.memory import Budget
from minutewheel.dispatcher.queues import Queues
from minutewheel.store.position import pack_position
from minutewheel.store.progress import Progress
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.sqlite_ledger import SqliteLedger
from minutewheel.store.task import SHARDS, minute_of

from .deeds import drive
from .line import Line
from .member import Host, Member, MemberClock
from .taps import BrokerTap, StoreTap, Watcher

START_MS = 29_000_000 * 60_000
QUEUES = ("mail", "silent", "nowhere")
"""`silent` expects no outcomes; `nowhere` is declared and has no topic."""


class Ground:
    """Store, broker, ledger and coordinator of one history."""

    def __init__(self, now_ms: Callable[[], int], watcher: Watcher, session_ms: int) -> None:
        self._now_ms = now_ms
        self.topics = Topics()
        self.bare_store = drive(SqliteStore.open(":memory:", at_once, synchronous="OFF"))
        drive(self.bare_store.set_up(minute_of(START_MS) - 1, [(pack_position(1, 0),) * 3] * SHARDS))
        broker = drive(SqliteBroker.open(":memory:", at_once, now_ms, synchronous="OFF"))
        due = [self.topics.due(queue) for queue in QUEUES if queue != "nowhere"]
        drive(broker.create_topics(dict.fromkeys((*self.topics.fixed, *due), SHARDS)))
        self.store = StoreTap(self.bare_store, watcher)
        self.broker = BrokerTap(broker, watcher)
        self.ledger = drive(SqliteLedger.open(":memory:", at_once, synchronous="OFF"))
        self.coordinator = LocalCoordinator.in_memory(now_ms, session_timeout_ms=session_ms)
        self.decoder = Decoder(topics=self.topics)
        self.queues = Queues()
        self.queues.learn(QUEUES, ["silent"])

    def close(self) -> None:
        for twin in (self.bare_store, self.broker, self.ledger):
            drive(twin.close())

    def member(self, host: Host, name: str, limits: Limits, tasks_max: int, chunk: int) -> Member:
        """A process that starts and joins."""
        line, clock = Line(self.coordinator, self._now_ms), MemberClock(host)
        member = Member(
            host,
            name,
            drive(Leasing.join(line, name, clock, 0)),
            clock,
            store=self.store,  # type: ignore[arg-type]
            broker=self.broker,  # type: ignore[arg-type]
            topics=self.topics,
            decoder=self.decoder,
            queues=self.queues,
            limits=limits,
            budget=Budget(tasks_max),
            chunk=chunk,
        )
        member.line = line
        return member

    def holder(self, number: int) -> str | None:
        return drive(self.coordinator.owners()).get(number)

    def progress(self, number: int) -> Progress:
        return drive(self.bare_store.progress(number, -1))

    def bucket_rows(self, number: int, before_minute: int) -> int:
        """How many rows stand in minutes that are closed."""
        open_minute = min(before_minute, self.progress(number).open_minute)
        sql = "SELECT count(*) FROM bucket WHERE shard = ? AND minute < ?"
        rows: int = self.bare_store._writer._db.execute(sql, (number, open_minute)).fetchone()[0]
        return rows
