"""The shell, whole: real loop, real clock, real twins in memory, one process, several members."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from minutewheel.broker.compose import Composer, Submission
from minutewheel.broker.due import Delivered, parse_due
from minutewheel.broker.errors import BrokerError, Unpublishable
from minutewheel.broker.port import Produced
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.coordinator import LocalCoordinator
from minutewheel.dispatcher import dispatcher as shell
from minutewheel.dispatcher.clock import SystemClock
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.dispatcher import Dispatcher
from minutewheel.dispatcher.memory import Budget
from minutewheel.dispatcher.queues import Queues
from minutewheel.store.port import Queue
from minutewheel.store.position import pack_position
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.task import SHARDS
from structlog.testing import capture_logs

TOPICS = Topics()
PATIENCE_S = 20
HOUR_MS = 3_600_000


class Choosy:
    """A broker that may be told which messages it does not take, and how it says so."""

    def __init__(self, broker: SqliteBroker) -> None:
        self._broker = broker
        self.refuse: Callable[[Message], BrokerError | None] = lambda _: None
        self.purges = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def purge(self) -> None:
        self.purges += 1
        self._broker.purge()

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        refused = [self.refuse(message) for message in messages]
        good = [message for message, error in zip(messages, refused, strict=True) if error is None]
        taken = iter(await self._broker.produce(good) if good else ())
        return [error or next(taken) for error in refused]


class Fleet:
    """An installation in memory, and the dispatchers that serve it."""

    def __init__(self, store: SqliteStore, broker: SqliteBroker) -> None:
        self.store = store
        self.broker = Choosy(broker)
        self.clock = SystemClock()
        self.ahead_ms = 0
        self.coordinator = LocalCoordinator.in_memory(lambda: self.clock.monotonic_ms() + self.ahead_ms)
        self.composer = Composer(TOPICS)
        self.readers = 0

    async def set_up(self) -> None:
        await self.broker.create_topics(dict.fromkeys((*TOPICS.fixed, TOPICS.due("mail")), SHARDS))
        await self.store.set_up(self.now_ms() // 60_000, [(pack_position(1, 0),) * 3] * SHARDS)
        await self.store.put_queue(Queue("mail"))

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def dispatcher(self, member: str, *, declares: bool = False) -> Dispatcher:
        return Dispatcher(
            store=self.store,
            catalog=self.store,
            broker=self.broker,
            coordinator=self.coordinator,
            member=member,
            clock=self.clock,
            decoder=Decoder(topics=TOPICS),
            queues=Queues(declares=declares),
            topics=TOPICS,
            limits=Limits(),
            budget=Budget(),
            settle_ms=100,
        )

    @asynccontextmanager
    async def running(self, member: str, **more: Any) -> AsyncIterator[Dispatcher]:
        """A dispatcher that serves, and hands all over in the end."""
        one = self.dispatcher(member, **more)
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(one.run())
            try:
                yield one
            finally:
                one.stop()

    async def submit(self, dues: dict[str, int], **more: Any) -> None:
        more = {"queue": "mail", "payload": b"body"} | more
        items = [self.composer.item(Submission(id=task_id, due=due_ms, **more)) for task_id, due_ms in dues.items()]
        answers = await self.broker.produce(self.composer.batches(items))
        assert all(isinstance(answer, Produced) for answer in answers)

    async def records(self, topic: str, count: int) -> list[Record]:
        """All there are, once there are so many."""
        self.readers += 1
        reader = await self.broker.join(f"reader {self.readers}", [topic], "reader")
        found: list[Record] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                found += await reader.poll(1_000, 1_000)
        await reader.leave()
        return found

    async def delivered(self, count: int, queue: str = "mail") -> list[tuple[Delivered, int]]:
        """What was published and when, once it is so much."""
        return [(parse_due(record), record.time_ms) for record in await self.records(TOPICS.due(queue), count)]

    async def published(self, queue: str = "mail") -> int:
        return sum(bounds.end for bounds in await self.broker.bounds(TOPICS.due(queue), range(SHARDS)))


async def until(holds: Callable[[], bool]) -> None:
    """For what nobody announces: look again each time the loop has come round."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110  what is waited for is the state of the product, which has no event for it
            await asyncio.sleep(0.005)


@pytest.fixture
async def fleet(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    monkeypatch.setattr(shell, "LOOK_MS", 100)
    monkeypatch.setattr(shell, "RETRY_MS", 20)
    monkeypatch.setattr(shell, "FETCH_WAIT_MS", 200)
    store = await SqliteStore.open(":memory:", at_once, synchronous="OFF")
    broker = await SqliteBroker.open(":memory:", at_once, SystemClock().now_ms, synchronous="OFF")
    fleet = Fleet(store, broker)
    await fleet.set_up()
    yield fleet
    await broker.close()
    await store.close()


def serves(one: Dispatcher, shards: int = SHARDS) -> bool:
    return sum(shard.life == "serving" for shard in one.shards.values()) == shards


async def test_case_28_in_small_tasks_filed_into_a_minute_that_is_already_loaded(fleet: Fleet) -> None:
    async with fleet.running("a") as one:
        await until(lambda: serves(one))
        now_ms = fleet.now_ms()
        soon = {f"soon{n}": now_ms + 200 + 8 * n for n in range(100)}
        past = {"past": now_ms - 5_000, "long past": now_ms - 2 * HOUR_MS}
        await fleet.submit(soon | past | {"far": now_ms + HOUR_MS})
        delivered = await fleet.delivered(len(soon | past))
    assert await fleet.published() == len(soon | past)
    assert Counter(one.id for one, _ in delivered) == dict.fromkeys(soon | past, 1)
    assert all(at_ms >= one.due_ms for one, at_ms in delivered)


async def test_what_was_fired_is_recorded_by_the_drain_and_not_fired_again(fleet: Fleet) -> None:
    async with fleet.running("a"):
        await fleet.submit({f"t{n}": fleet.now_ms() for n in range(50)})
        await fleet.delivered(50)
    for shard in range(SHARDS):
        progress = await fleet.store.progress(shard, 1 << 40)
        bounds = (await fleet.broker.bounds(TOPICS.submit, [shard]))[0]
        assert progress.offsets[0] == pack_position(1, bounds.end)
    async with fleet.running("b") as two:
        await until(lambda: serves(two))
        await fleet.submit({"last": fleet.now_ms()})
        await fleet.delivered(51)
    assert await fleet.published() == 51


async def test_a_hand_over_between_two_members_delivers_nothing_twice(fleet: Fleet) -> None:
    """The second joins, gets half, and all when the first stops; tasks fall due all the time."""
    async with fleet.running("b", declares=False) as two:
        async with fleet.running("a") as one:
            start_ms = fleet.now_ms()
            dues = {f"t{n}": start_ms + 5 * n for n in range(400)}
            await fleet.submit(dues)
            await until(lambda: serves(one, SHARDS // 2) and serves(two, SHARDS // 2))
            assert one.shards.keys().isdisjoint(two.shards)
        assert one.shards == {}
        delivered = await fleet.delivered(len(dues))
        await until(lambda: serves(two))
    assert await fleet.published() == len(dues)
    assert Counter(task.id for task, _ in delivered) == dict.fromkeys(dues, 1)
    assert await fleet.coordinator.owners() == {}


async def test_case_41_the_task_that_is_too_large_by_now_is_dead_and_its_neighbours_fire(fleet: Fleet) -> None:
    too_large = Unpublishable("too_large", "more than the topic takes")
    fleet.broker.refuse = lambda m: too_large if m.topic == TOPICS.due("mail") and len(m.value or b"") > 100 else None
    async with fleet.running("a"):
        now_ms = fleet.now_ms()
        small = {f"small{n}": now_ms for n in range(70)}
        await fleet.submit(small)
        await fleet.submit({"big": now_ms}, payload=b"x" * 101)
        delivered = await fleet.delivered(len(small))
        (dead,) = await fleet.records(TOPICS.dead, 1)
    assert {task.id for task, _ in delivered} == small.keys()
    headers = dict(dead.headers)
    assert (headers["mw_id"], dead.value) == (b"big", b"x" * 101)
    assert (headers["mw_reason"] or b"").startswith(b"too_large")


async def test_what_the_broker_does_not_take_now_waits_and_goes_out_later(fleet: Fleet) -> None:
    tried: list[bytes | None] = []

    def down(message: Message) -> BrokerError | None:
        if message.topic == TOPICS.due("mail") and len(tried) < 100:
            tried.append(message.key)
            return BrokerError("down")
        return None

    fleet.broker.refuse = down
    async with fleet.running("a"):
        await fleet.submit({f"t{n}": fleet.now_ms() for n in range(30)})
        delivered = await fleet.delivered(30)
    assert len(tried) == 100
    assert Counter(task.id for task, _ in delivered) == {f"t{n}": 1 for n in range(30)}
    assert await fleet.published() == 30


async def test_a_stop_while_the_broker_takes_nothing_leaves_all_to_the_next(fleet: Fleet) -> None:
    fleet.broker.refuse = lambda m: BrokerError("down") if m.topic == TOPICS.due("mail") else None
    async with fleet.running("a") as one:
        await fleet.submit({f"t{n}": fleet.now_ms() for n in range(30)})
        await until(lambda: sum(len(s.context.memory.firing) for s in one.shards.values() if s.claimed) > 0)
    assert await fleet.published() == 0
    fleet.broker.refuse = lambda _: None
    async with fleet.running("b"):
        await fleet.delivered(30)
    assert await fleet.published() == 30


async def test_a_queue_that_is_met_is_declared_where_that_is_allowed(fleet: Fleet) -> None:
    async with fleet.running("a", declares=True) as one:
        await until(lambda: serves(one))
        await fleet.submit({"t": fleet.now_ms()}, queue="new")
        await until(lambda: "new" in one._queues._known)
        (delivered,) = await fleet.delivered(1, "new")
    assert delivered[0].queue == "new"
    assert [queue.name for queue in await fleet.store.queues()] == ["mail", "new"]


async def test_a_queue_that_nobody_declared_is_refused_elsewhere(fleet: Fleet) -> None:
    async with fleet.running("a") as one:
        await until(lambda: serves(one))
        await fleet.submit({"t": fleet.now_ms()}, queue="new")
        (rejected,) = await fleet.records(TOPICS.rejected, 1)
    assert dict(rejected.headers)["mw_code"] == b"unknown_queue"
    assert TOPICS.due("new") not in await fleet.broker.topics()


async def test_a_member_whose_session_is_over_ends_and_another_takes_its_shards(fleet: Fleet) -> None:
    one = fleet.dispatcher("a")
    run = asyncio.create_task(one.run())
    await until(lambda: serves(one))
    fleet.ahead_ms = 60_000
    async with asyncio.timeout(PATIENCE_S):
        await run
    assert one.shards == {}
    async with fleet.running("b") as two:
        await until(lambda: serves(two))
        await fleet.submit({"t": fleet.now_ms()})
        await fleet.delivered(1)


async def test_what_is_unsent_when_trust_ends_is_dropped_once(fleet: Fleet) -> None:
    async with fleet.running("a") as one:
        await until(lambda: serves(one))
        assert fleet.broker.purges == 0
        fleet.ahead_ms += HOUR_MS
        await until(lambda: not one.shards)
    assert fleet.broker.purges == 1


async def test_a_log_that_was_made_anew_is_an_alarm_and_is_not_read_on(fleet: Fleet) -> None:
    async with fleet.running("a") as one:
        await until(lambda: serves(one))
        with capture_logs() as told:
            await fleet.broker.delete_topic(TOPICS.submit)
            await fleet.broker.create_topics({TOPICS.submit: SHARDS})
            await fleet.submit({"late": fleet.now_ms()})
            await until(
                lambda: {line["shard"] for line in told if line["event"] == "offset gone"} == set(range(SHARDS))
            )
        alarms = [line for line in told if line["event"] == "offset gone"]
        assert {(line["log_level"], line["topic"]) for line in alarms} == {("critical", TOPICS.submit)}
    assert await fleet.published() == 0
