"""A stand for workers: the embedded broker and ledger in memory, due records as the dispatcher publishes them, a clock
that can jump, and doubles at the seams that crash or hang."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from minutewheel.broker.due import due_message
from minutewheel.broker.outcome import Outcome, Reported, decode_outcome
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Broker
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message, Topics
from minutewheel.store.port import Ledger
from minutewheel.store.record import Filed, Headers, Options, encode_headers, encode_options, pack
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.sqlite_ledger import SqliteLedger
from minutewheel.worker import App, Worker, WorkerLimits

TOPICS = Topics("mw")
START_MS = 1_790_000_000_000


class JumpingClock:
    """Runs with the real time, and jumps when told to: all that sleep look again."""

    def __init__(self) -> None:
        self._ahead_ms = 0
        self._jumped = asyncio.Event()

    def now_ms(self) -> int:
        return START_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms

    async def sleep_ms(self, ms: int) -> None:
        until_ms = self.monotonic_ms() + ms
        while (left_ms := until_ms - self.monotonic_ms()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_ms / 1_000):
                    await self._jumped.wait()

    def jump(self, ms: int) -> None:
        self._ahead_ms += ms
        self._jumped.set()
        self._jumped = asyncio.Event()


class Crash(Exception):
    """The process is gone: no call of it reaches anything any more."""


class Stand:
    """One installation, as workers see it."""

    crash = Crash

    def __init__(self, broker: SqliteBroker, ledger: SqliteLedger, clock: JumpingClock) -> None:
        self.broker = broker
        self.ledger = ledger
        self.clock = clock
        self.app = App("app")
        self._filings = iter(range(1 << 14, 1 << 30))

    def due(
        self,
        key: str,
        *,
        queue: str = "mail",
        payload: bytes = b"{}",
        options: Options | None = None,
        headers: Headers = (),
        attempt: int = 1,
        expires_ms: int = 0,
        filing: int | None = None,
    ) -> Message:
        number = next(self._filings) if filing is None else filing
        filed = Filed(
            1,
            number,
            attempt,
            2,
            expires_ms,
            key,
            queue,
            encode_options(options or Options()),
            encode_headers(headers),
            payload,
        )
        due_ms = START_MS
        return due_message(TOPICS, shard_of(key), due_ms // 60_000, due_ms, number, pack(filed))

    async def publish(self, *messages: Message) -> None:
        assert all(not isinstance(answer, Exception) for answer in await self.broker.produce(messages))

    async def outcomes(self, key: str, count: int = 1) -> list[Outcome]:
        """The first outcomes of a key, when there are so many."""
        shard = shard_of(key)
        found: list[Outcome] = []
        offset = 0
        while len(found) < count:
            fetched = await self.broker.fetch(TOPICS.outcomes, shard, offset, 100, 1_000)
            offset = fetched.next_offset
            for record in fetched.records:
                reported = decode_outcome(record, shard, fetched.incarnation, TOPICS)
                assert isinstance(reported, Reported), reported
                if reported.outcome.key == key:
                    found.append(reported.outcome)
        return found

    async def until(self, holds: Callable[[], object]) -> None:
        """Let the others run until it holds."""
        while not holds():  # noqa: ASYNC110  # what is waited for is a state, not an event
            await asyncio.sleep(0)

    async def committed(self, group: str = "mw.app", queue: str = "mail") -> int:
        """How many records of a queue the group would not read again."""
        member = await self.broker.join(group, [TOPICS.due(queue)], "onlooker")
        left = len(await member.poll(1_000, 0))
        await member.leave()
        partitions = (await self.broker.topics())[TOPICS.due(queue)]
        return sum(bounds.end for bounds in await self.broker.bounds(TOPICS.due(queue), range(partitions))) - left

    def worker(
        self, app: App | None = None, *, broker: Broker | None = None, ledger: Ledger | None = None, **options: Any
    ) -> Worker:
        group = options.pop("group", None)
        limits: dict[str, Any] = {"poll_ms": 20, "commit_ms": 5, "grace_ms": 2_000, "flush_ms": 500, **options}
        return Worker(
            app or self.app,
            broker or self.broker,
            ledger or self.ledger,
            topics=TOPICS,
            limits=WorkerLimits(**limits),
            clock=self.clock,
            group=group,
        )

    @asynccontextmanager
    async def running(self, worker: Worker) -> AsyncIterator[Worker]:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            yield worker
            worker.stop()


class Fuse:
    """Crashes a process at its n-th call to the outside, before or after that call has its effect."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.calls = 0
        self.blown = False
        self._at = at
        self._after = after

    async def through(self, call: Callable[[], Awaitable[Any]]) -> Any:
        if self.blown:
            raise Crash
        self.calls += 1
        mine = self.calls == self._at
        if mine and not self._after:
            self._blow()
        answer = await call()
        if mine:
            self._blow()
        if self.blown:
            raise Crash
        return answer

    def _blow(self) -> None:
        self.blown = True
        raise Crash


class Fused:
    """A port whose calls go through a fuse; a member of a group that it gives does, too."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if name == "assigned":
            return verb

        async def call(*arguments: Any, **named: Any) -> Any:
            if name == "poll" and not self._fuse.blown:
                return await verb(*arguments, **named)  # changes nothing outside; a crash in it is one before or after
            answer = await self._fuse.through(lambda: verb(*arguments, **named))
            return Fused(answer, self._fuse) if name == "join" else answer

        return call


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    clock = JumpingClock()
    broker = await SqliteBroker.open(":memory:", at_once, clock.now_ms)
    ledger = await SqliteLedger.open(":memory:", at_once)
    await broker.create_topics(dict.fromkeys(TOPICS.fixed, 64) | {TOPICS.due("mail"): 4, TOPICS.due("sms"): 4})
    yield Stand(broker, ledger, clock)
    await broker.close()
    await ledger.close()


@pytest.fixture
def fused() -> Callable[[int, bool, Broker, Ledger], tuple[Fuse, Broker, Ledger]]:
    def make(at: int, after: bool, broker: Broker, ledger: Ledger) -> tuple[Fuse, Any, Any]:
        fuse = Fuse(at, after=after)
        return fuse, Fused(broker, fuse), Fused(ledger, fuse)

    return make
