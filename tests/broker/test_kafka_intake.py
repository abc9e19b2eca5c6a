"""A dispatcher whose logs are Kafka's: what can't be decoded (case 43), and a crash in the middle of forwarding."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.kafka import KafkaBroker
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Produced
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.coordinator import LocalCoordinator
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

pytestmark = pytest.mark.real
PATIENCE_S = 60


class Torn:
    """A broker whose client sends nothing after a forwarded command, and ends when that was acknowledged."""

    def __init__(self, broker: KafkaBroker, forwarded: str) -> None:
        self._broker = broker
        self._forwarded = forwarded
        self._last_sent = False
        self.torn = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        last = any(message.topic == self._forwarded for message in messages)
        if self._last_sent:
            await asyncio.Event().wait()
        self._last_sent = last
        answers = await self._broker.produce(messages)
        if last:
            self.torn.set()
            await asyncio.Event().wait()
        return answers


class Site:
    """Kafka's logs, and a store in memory that outlives its dispatchers."""

    def __init__(self, corner: Any, broker: KafkaBroker, store: SqliteStore) -> None:
        self.broker = broker
        self.topics = Topics(corner.prefix)
        self.clock = SystemClock()
        self.coordinator = LocalCoordinator.in_memory(self.clock.monotonic_ms)
        self.store = store
        self.groups = 0

    async def set_up(self) -> None:
        await self.broker.create_topics(dict.fromkeys((*self.topics.fixed, self.topics.due("mail")), SHARDS))
        await self.store.set_up(self.clock.now_ms() // 60_000, [(pack_position(1, 0),) * 3] * SHARDS)
        await self.store.put_queue(Queue("mail"))

    @asynccontextmanager
    async def running(self, member: str, broker: Any = None) -> AsyncIterator[asyncio.Task[None]]:
        one = Dispatcher(
            store=self.store,
            catalog=self.store,
            broker=broker or self.broker,
            coordinator=self.coordinator,
            member=member,
            clock=self.clock,
            decoder=Decoder(topics=self.topics),
            queues=Queues(declares=False),
            topics=self.topics,
            limits=Limits(),
            budget=Budget(),
            settle_ms=0,
        )
        serving = asyncio.create_task(one.run())
        try:
            yield serving
        finally:
            one.stop()
            with suppress(asyncio.CancelledError):
                await serving

    async def records(self, topic: str, count: int) -> list[Record]:
        """All there are, once there are so many."""
        found: list[Record] = []
        async with asyncio.timeout(PATIENCE_S):
            while sum(bounds.end for bounds in await self.broker.bounds(topic, range(SHARDS))) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        for partition, bounds in enumerate(await self.broker.bounds(topic, range(SHARDS))):
            if bounds.end:
                found += (await self.broker.fetch(topic, partition, 0, 1_000, 10_000)).records
        return found

    def task(self, task_id: str, shard: int | None = None, **more: Any) -> Message:
        body = {"id": task_id, "queue": "mail", "due": self.clock.now_ms(), "payload": {}} | more
        key = f"default/{task_id}".encode()
        return Message(
            self.topics.submit, key, json.dumps(body).encode(), (), shard_of(key.decode()) if shard is None else shard
        )


@pytest.fixture
async def site(corner: Any) -> AsyncIterator[Site]:
    store = await SqliteStore.open(":memory:", at_once, synchronous="OFF")
    made = Site(corner, await corner.open(), store)
    await made.set_up()
    yield made
    await store.close()


async def test_case_43_what_can_not_be_decoded_is_put_aside_once_and_intake_goes_on(site: Site) -> None:
    shard = shard_of("default/first")
    twin = next(f"last{n}" for n in range(10_000) if shard_of(f"default/last{n}") == shard)
    bad = [b"", b"\xff\xfe{}", b'{"id": "x", "queue"', b'{"v": 99}', b"[" * 900_000]
    messages = [
        site.task("first"),
        *(Message(site.topics.submit, b"default/bad", value, (), shard) for value in bad),
        Message(site.topics.submit, None, None, (), shard),
        site.task(twin),
    ]
    answers = await site.broker.produce(messages)
    assert all(isinstance(answer, Produced) for answer in answers)
    async with site.running("a"):
        due = await site.records(site.topics.due("mail"), 2)
        rejected = await site.records(site.topics.rejected, len(bad) + 1)
    assert Counter(dict(r.headers)["mw_id"] for r in due) == {b"first": 1, twin.encode(): 1}
    assert len(rejected) == len(bad) + 1
    assert all(dict(r.headers)["mw_code"] and dict(r.headers)["mw_message"] for r in rejected)
    where = [int(dict(r.headers)["mw_offset"] or b"") for r in rejected]
    assert sorted(where) == list(range(1, len(bad) + 2))
    kept = {int(dict(r.headers)["mw_offset"] or b""): r.value for r in rejected}
    assert [kept[1 + n] for n in range(4)] == bad[:4]


async def test_a_crash_between_forwarding_and_storing_the_offset_repeats_nothing(site: Site) -> None:
    right = shard_of("default/lost")
    # Due after the crash, so that firing has no part in it.
    due_ms = site.clock.now_ms() + 8_000
    await site.broker.produce([site.task("lost", (right + 1) % SHARDS, due=due_ms, receipt="all")])
    torn = Torn(site.broker, site.topics.forwarded)
    async with site.running("a", torn) as serving:
        async with asyncio.timeout(PATIENCE_S):
            await torn.torn.wait()
        serving.cancel()
    assert site.clock.now_ms() < due_ms
    async with site.running("b"):
        forwarded = await site.records(site.topics.forwarded, 2)
        await site.records(site.topics.due("mail"), 1)
        # What comes behind the repeat in its partition shows that the repeat was read.
        behind = next(f"behind{n}" for n in range(10_000) if shard_of(f"default/behind{n}") == right)
        await site.broker.produce([site.task(behind, (right + 1) % SHARDS)])
        due = await site.records(site.topics.due("mail"), 2)
    assert len({record.value for record in forwarded}) == 1
    assert Counter(dict(r.headers)["mw_id"] for r in due) == {b"lost": 1, behind.encode(): 1}
    receipts = [json.loads(r.value or b"") for r in await site.records(site.topics.receipts, 1)]
    assert [r["answer"] for r in receipts] == ["accepted"]
