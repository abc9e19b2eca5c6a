"""A dispatcher process that lost its session is a new member soon after; a stop ends it wherever it stands."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Topics
from minutewheel.coordinator import CoordinatorUnavailable, LocalCoordinator, MemberKnown
from minutewheel.dispatcher import rejoining
from minutewheel.dispatcher.clock import SystemClock
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.dispatcher import Dispatcher
from minutewheel.dispatcher.memory import Budget
from minutewheel.dispatcher.queues import Queues
from minutewheel.dispatcher.rejoining import Rejoining
from minutewheel.store.position import pack_position
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.task import SHARDS

TOPICS = Topics()
PATIENCE_S = 20


class Unreachable:
    """A coordinator that cannot be reached the first times; afterwards it is the one within."""

    def __init__(self, coordinator: LocalCoordinator, times: int) -> None:
        self._coordinator = coordinator
        self.left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)

    async def join(self, member: str) -> Any:
        if self.left:
            self.left -= 1
            raise CoordinatorUnavailable("nobody there")
        return await self._coordinator.join(member)


class Bench:
    """One process, whose dispatchers are called 1, 2, …"""

    def __init__(self, store: SqliteStore, broker: SqliteBroker) -> None:
        self.store, self.broker, self.clock = store, broker, SystemClock()
        self.ahead_ms = 0
        self.coordinator: Any = LocalCoordinator.in_memory(lambda: self.clock.monotonic_ms() + self.ahead_ms)
        self.made = 0
        self.one = Rejoining(self.make)

    def make(self) -> Dispatcher:
        self.made += 1
        return Dispatcher(
            store=self.store,
            catalog=self.store,
            broker=self.broker,
            coordinator=self.coordinator,
            member=f"{self.made}",
            clock=self.clock,
            decoder=Decoder(topics=TOPICS),
            queues=Queues(declares=False),
            topics=TOPICS,
            limits=Limits(),
            budget=Budget(),
            settle_ms=0,
        )

    def serves(self, member: str) -> bool:
        dispatcher = self.one.dispatcher
        if dispatcher is None or dispatcher.member != member:
            return False
        return sum(shard.life == "serving" for shard in dispatcher.shards.values()) == SHARDS


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  what is waited for is the state of the product, which has no event for it
            await asyncio.sleep(0.005)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(rejoining, "PAUSE_S", 0.02)
    store = await SqliteStore.open(":memory:", at_once, synchronous="OFF")
    broker = await SqliteBroker.open(":memory:", at_once, SystemClock().now_ms, synchronous="OFF")
    await broker.create_topics(dict.fromkeys(TOPICS.fixed, SHARDS))
    await store.set_up(SystemClock().now_ms() // 60_000, [(pack_position(1, 0),) * 3] * SHARDS)
    yield Bench(store, broker)
    await broker.close()
    await store.close()


async def test_after_a_lost_session_it_serves_as_a_new_member(bench: Bench) -> None:
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(bench.one.run())
        await until(lambda: bench.serves("1"))
        bench.ahead_ms += 60_000
        await until(lambda: bench.serves("2"))
        assert set((await bench.coordinator.owners()).values()) == {"2"}
        bench.one.stop()
    assert await bench.coordinator.owners() == {}
    assert bench.made == 2


async def test_while_the_coordinator_is_away_it_tries_on_with_new_members(bench: Bench) -> None:
    bench.coordinator = Unreachable(bench.coordinator, 3)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(bench.one.run())
        await until(lambda: bench.serves("4"))
        bench.one.stop()


async def test_a_stop_while_the_coordinator_is_away_ends_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejoining, "PAUSE_S", 3_600)
    bench.coordinator = Unreachable(bench.coordinator, 1)
    run = asyncio.create_task(bench.one.run())
    await until(lambda: bench.coordinator.left == 0)
    bench.one.stop()
    async with asyncio.timeout(PATIENCE_S):
        await run
    assert bench.made == 1


async def test_what_is_not_the_coordinators_doing_is_raised(bench: Bench) -> None:
    await bench.coordinator.join("1")
    with pytest.raises(MemberKnown):
        await bench.one.run()
