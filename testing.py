"""How does a program test its handlers and what it schedules, without waiting for the time to come?

    async with virtual(app) as client:
        await remind.schedule(client, Mail(to="eve"), delay=timedelta(hours=3))
        await client.advance(hours=3)
        assert client.runs[-1].kind == "done"

Everything is the product's own code, in one process and in memory: the decoder, the shards, the gate, the embedded
store, broker and ledger, the handlers. Only the clock is virtual: nothing happens between two calls of `advance`, and
an advance visits every instant at which something is due, in order; retries and snoozes come when their time comes.
One handler runs at a time. What a handler itself waits for takes real time, and so does its timeout.
"""

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from .broker.due import Delivered, parse_due
from .broker.errors import BrokerError
from .broker.form import DEFAULT_TENANT
from .broker.outcome import outcome_message, outcome_of
from .broker.port import GroupMember, Produced
from .broker.sqlite import SqliteBroker
from .broker.submission import Decoder
from .broker.wire import Message, Topics
from .dispatcher.activity import Asked
from .dispatcher.context import Limits
from .dispatcher.decoding import decoding
from .dispatcher.due import Due
from .dispatcher.gate import Gate
from .dispatcher.memory import Budget
from .dispatcher.perform import Performer
from .dispatcher.publishing import landed, outgoing
from .dispatcher.shard import Shard
from .store.port import Granted, Queue
from .store.position import Log, pack_position
from .store.sqlite import SqliteStore
from .store.sqlite_connection import at_once
from .store.sqlite_ledger import SqliteLedger
from .store.task import SHARDS, minute_of
from .worker import App, AsyncClient, NoAnswer, TaskView
from .worker.attempt import Ending, before_start, make_context, perform, prepare, timeout_of
from .worker.claims import ledger_place
from .worker.once import first_time, number_of, place_of
from .worker.span import Cut, Span
from .worker.threads import Threads

START = datetime(2030, 1, 1, 9, tzinfo=UTC)
HOLD_MS = 30_000
CHUNK = 2_000
UNHURRIED = Limits(checkpoint_ms=0, checkpoint_relaxed_ms=0, close_look_ms=3_600_000, closes_max=1_000)
"""Nobody waits for a minute to be closed here."""
MEMBER = "virtual"


class VirtualClock:
    """A clock that stands still until it is told to go on. Sleeping is going on."""

    def __init__(self, start_ms: int) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    async def sleep_ms(self, ms: int) -> None:
        self._now_ms += ms


class Run(Struct, frozen=True):
    """One delivery of a task: when it came, and how it ended. `kind` is as in an outcome: done, failed, snoozed …"""

    key: str
    attempt: int
    at_ms: int
    kind: str
    reason: str = ""


class _Installation:
    """The parts that a virtual client stands on."""

    def __init__(self, broker: SqliteBroker, store: SqliteStore, ledger: SqliteLedger, clock: VirtualClock) -> None:
        self.broker = broker
        self.store = store
        self.ledger = ledger
        self.clock = clock
        self.topics = Topics()
        self._gate = Gate()
        self._shards: dict[int, Shard] = {}
        self._performer = Performer(store, broker, self.topics)
        self._decoder = Decoder(topics=self.topics)
        self._told = False

    def next_ms(self) -> int | None:
        """The next instant at which something may happen by itself."""
        times = [shard.next_ms() for shard in self._shards.values()]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    async def apply(self) -> None:
        """Let the shards take what stands in their logs, until they have nothing to do at this instant."""
        moved = True
        while moved:
            moved = False
            for shard in self._shards.values():
                moved |= await self._perform(shard, shard.step(self.clock.now_ms()))
                if self._told:
                    moved |= await self._read(shard)
        self._told = False

    async def publish(self) -> bool:
        """Let out what is due; whether there was any."""
        now_ms = self.clock.now_ms()
        for shard in self._shards.values():
            self._gate.offer(shard.take_due(now_ms, CHUNK), now_ms)
        dues = self._gate.release(now_ms, CHUNK)
        if not dues:
            return False
        for number, some in _by_shard(dues).items():
            self._shards[number].released(some)
        silent = {queue.name for queue in await self.store.queues() if queue.outcomes == "none"}
        sent = outgoing(dues, now_ms, self.topics, silent)
        while sent:
            result = landed(sent, await self.broker.produce([out.message for out in sent]), self.topics)
            assert not result.back, "the broker in memory takes all that it can take"
            for number, fired in _by_shard(result.fired).items():
                self._shards[number].fired(fired, now_ms)
            sent = result.next
        self._told = True
        return True

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        """Publish, and own the shards that anything was sent to."""
        answers = await self.broker.produce(messages)
        self._take_shards({answer.partition for answer in answers if isinstance(answer, Produced)})
        self._told = True
        return answers

    def _take_shards(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number not in self._shards:
                shard = Shard(
                    shard=number,
                    fence=1,
                    member=MEMBER,
                    now_ms=self.clock.now_ms(),
                    topics=self.topics,
                    decode=decoding(number, self._decoder, self.topics, lambda _: True),
                    budget=Budget(),
                    limits=UNHURRIED,
                )
                shard.clock_confirmed = True
                self._shards[number] = shard

    async def _read(self, shard: Shard) -> bool:
        read = False
        for log in Log:
            if (wanted := shard.wants(log)) is not None:
                topic = self.topics.logs[log]
                fetched = await self.broker.fetch(topic, shard.shard, wanted.offset, wanted.limit, 0)
                shard.deliver(log, fetched)
                read |= bool(fetched.records)
        return read

    async def _perform(self, shard: Shard, asked: list[Asked]) -> bool:
        performed = bool(asked)
        while asked:
            one = asked.pop(0)
            answer = await self._performer.perform(shard.shard, one.effect)
            asked += shard.resume(one.activity, answer, self.clock.now_ms())
        return performed


class VirtualClient(AsyncClient):
    """An `AsyncClient` whose installation runs only when it is told to, on a clock of its own.

    `runs` are the deliveries so far. Commands are applied at once; what is due runs in `advance` and `wait`.
    """

    def __init__(self, installation: _Installation, app: App, member: GroupMember | None) -> None:
        super().__init__(
            installation.broker,
            installation.store,
            installation.store,
            installation.ledger,
            topics=installation.topics,
            clock=installation.clock,
            undeclared=True,
        )
        self.clock = installation.clock
        self.runs: list[Run] = []
        self._installation = installation
        self._app = app
        self._member = member
        self._threads = Threads(1)

    @property
    def now(self) -> datetime:
        """The present virtual time, UTC."""
        return datetime.fromtimestamp(self.clock.now_ms() / 1_000, UTC)

    async def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: int = 0) -> None:
        """Let so much time pass, and run what is due meanwhile. Without arguments: what is due now."""
        step = timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=ms)
        until_ms = self.clock.now_ms() + step // timedelta(milliseconds=1)
        await self._run_due()
        while await self._go_on(until_ms):
            await self._run_due()

    async def wait(self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int | None = None) -> TaskView:
        """Let time pass until the task has come to its end; `NoAnswer` if it would not within `within_ms` (a year)."""
        until_ms = self.clock.now_ms() + (366 * 86_400_000 if within_ms is None else within_ms)
        await self._run_due()
        while (view := await self.get(task_id, tenant=tenant)) is None or not view.final:
            if not await self._go_on(until_ms):
                raise NoAnswer(f"{tenant}/{task_id} has not come to its end by {self.now.isoformat()}")
            await self._run_due()
        return view

    async def put_queue(self, queue: Queue) -> None:
        await super().put_queue(queue)
        await self._installation.apply()

    async def _produce(self, messages: list[Message]) -> list[Produced | BrokerError]:
        answers = await self._installation.produce(messages)
        await self._installation.apply()
        return answers

    async def _go_on(self, until_ms: int) -> bool:
        """Step to the next instant at which something may happen; false when the time is up."""
        now_ms = self.clock.now_ms()
        if now_ms >= until_ms:
            return False
        next_ms = self._installation.next_ms()
        next_ms = until_ms if next_ms is None else min(until_ms, next_ms)
        await self.clock.sleep_ms(max(1, next_ms - now_ms))
        return True

    async def _run_due(self) -> None:
        """All that is due at this instant, and all that follows from it at once."""
        busy = True
        while busy:
            await self._installation.apply()
            busy = await self._installation.publish()
            if busy and self._member is not None:
                for record in await self._member.poll(CHUNK, 0):
                    await self._run(parse_due(record))

    async def _run(self, delivered: Delivered) -> None:
        """What a worker does with a delivery (`worker.deliveries`), one after the other."""
        ledger, now_ms, place = self._installation.ledger, self.clock.now_ms(), ledger_place(delivered)
        (answer,) = await ledger.claim(place, [delivered.filing], MEMBER, now_ms, now_ms + HOLD_MS)
        if not isinstance(answer, Granted):
            return
        starts = delivered.task.starts + answer.starts
        ending = before_start(delivered, starts, now_ms) or await self._perform(delivered, starts)
        assert isinstance(ending, Ending), ending
        self.runs.append(Run(delivered.key, delivered.attempt, now_ms, ending.kind, ending.reason))
        outcome = outcome_of(
            delivered,
            ending.kind,
            starts=starts - (ending.kind == "snoozed"),
            reason=ending.reason,
            retryable=ending.retryable,
            delay_ms=ending.delay_ms,
        )
        await ledger.finish(place, [delivered.filing])
        await self._installation.produce([outcome_message(self._installation.topics, outcome)])

    async def _perform(self, delivered: Delivered, starts: int) -> Ending | Cut:
        prepared = prepare(self._app, delivered)
        if isinstance(prepared, Ending):
            return prepared
        handler, payload = prepared
        span = Span(timeout_of(handler, delivered))

        async def once(key: str) -> bool:
            place = place_of(delivered.queue, delivered.shard, delivered.origin)
            number = number_of(delivered.idempotency_key, key)
            return await first_time(self._installation.ledger, self.clock, uuid.uuid4().hex, place, number)

        context = make_context(
            handler, delivered=delivered, starts=starts, now_ms=self.clock.now_ms(), span=span, once=once
        )
        if not handler.waits:
            await self._threads.wait_free()
        return await perform(handler, payload, context, span, self._threads)


@asynccontextmanager
async def virtual(app: App, *, start: datetime = START) -> AsyncIterator[VirtualClient]:
    """A client on an installation of its own, with the handlers of `app`, whose clock stands at `start`."""
    clock = VirtualClock(int(start.timestamp() * 1_000))
    broker = await SqliteBroker.open(":memory:", at_once, clock.now_ms)
    store = await SqliteStore.open(":memory:", at_once)
    ledger = await SqliteLedger.open(":memory:", at_once)
    installation = _Installation(broker, store, ledger, clock)
    topics = installation.topics
    due = [topics.due(queue) for queue in app.queues]
    await broker.create_topics(dict.fromkeys([*topics.fixed, *due], SHARDS))
    for queue in app.queues:
        await store.put_queue(Queue(queue))
    start_position = pack_position(1, 0)
    await store.set_up(minute_of(clock.now_ms()), [(start_position,) * 3] * SHARDS)
    member = await broker.join(MEMBER, due, MEMBER) if due else None
    try:
        yield VirtualClient(installation, app, member)
    finally:
        for part in (broker, store, ledger):
            with suppress(Exception):
                await part.close()


def _by_shard(dues: list[Due]) -> dict[int, list[Due]]:
    by_shard: dict[int, list[Due]] = {}
    for due in dues:
        by_shard.setdefault(due.shard, []).append(due)
    return by_shard
