"""What the embedded groups do besides what every broker's must (see the conformance suite)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message
from minutewheel.store.sqlite_connection import OneThread

LONG_MS = 60_000


class Clock:
    now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def process(folder: Path, clock: Clock) -> AsyncIterator[SqliteBroker]:
    async with OneThread("broker") as call:
        broker = await SqliteBroker.open(str(folder / "broker.sqlite"), call, clock, synchronous="OFF", session_ms=900)
        await broker.create_topics({"t": 4})
        yield broker
        await broker.close()


async def test_a_member_that_waits_makes_room_for_one_that_joins_elsewhere(tmp_path: Path, clock: Clock) -> None:
    async with process(tmp_path, clock) as here, process(tmp_path, clock) as there:
        first = await here.join("workers", ["t"], "first")
        poll = asyncio.create_task(first.poll(10, LONG_MS))
        second = await there.join("workers", ["t"], "second")
        other = asyncio.create_task(second.poll(10, LONG_MS))
        while len(second.assigned()) < 2:
            await there.topics()
        assert len(first.assigned()) == 2
        await here.produce([Message("t", None, b"x", (), n) for n in range(4)])
        assert {r.partition for r in await poll} == {n for _, n in first.assigned()}
        assert {r.partition for r in await other} == {n for _, n in second.assigned()}


async def test_a_member_that_starts_again_under_its_name_takes_up_where_it_was(tmp_path: Path, clock: Clock) -> None:
    async with process(tmp_path, clock) as broker:
        member = await broker.join("workers", ["t"], "m")
        await broker.produce([Message("t", None, b"%d" % n, (), 0) for n in range(4)])
        await member.poll(10, 0)
        await member.commit({("t", 0): 2})
    async with process(tmp_path, clock) as broker:
        again = await broker.join("workers", ["t"], "m")
        assert len(again.assigned()) == 4
        assert [record.value for record in await again.poll(10, 0)] == [b"2", b"3"]


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
async def test_a_clock_that_steps_does_not_keep_the_dead_or_lose_the_living(
    tmp_path: Path, clock: Clock, step_ms: int
) -> None:
    async with process(tmp_path, clock) as broker:
        living = await broker.join("workers", ["t"], "living")
        await broker.join("workers", ["t"], "dead")
        await living.poll(10, 0)
        clock.now_ms += step_ms
        await living.poll(10, 0)
        assert len(living.assigned()) == 4


async def test_a_beat_keeps_the_membership_without_taking_records(tmp_path: Path, clock: Clock) -> None:
    async with process(tmp_path, clock) as broker:
        busy = await broker.join("workers", ["t"], "busy")
        idle = await broker.join("workers", ["t"], "idle")
        await broker.produce([Message("t", None, b"x", (), n) for n in range(4)])
        for _ in range(10):
            clock.now_ms += 400
            assert await busy.poll(0, LONG_MS) == []
            await idle.poll(10, 0)
        assert len(busy.assigned()) == 2
        assert len(await busy.poll(10, 0)) == 2


async def test_a_change_of_topics_is_a_change_of_the_deal(tmp_path: Path, clock: Clock) -> None:
    async with process(tmp_path, clock) as broker:
        await broker.create_topics({"u": 2})
        await broker.join("workers", ["t", "u"], "m")
        other = await broker.join("workers", ["t", "u"], "other")
        changed = await broker.join("workers", ["u"], "m")
        await other.poll(10, 0)
        await changed.poll(10, 0)
        assert {topic for topic, _ in changed.assigned()} == {"u"}
        assert sum(topic == "t" for topic, _ in other.assigned()) == 4


async def test_a_topic_made_anew_is_read_from_its_start(tmp_path: Path, clock: Clock) -> None:
    async with process(tmp_path, clock) as broker:
        holds = await broker.join("workers", ["t"], "holds")
        await broker.produce([Message("t", None, b"old", (), 0) for _ in range(9)])
        await holds.commit({("t", 0): len(await holds.poll(10, 0))})
        await broker.delete_topic("t")
        await broker.create_topics({"t": 4})
        await broker.produce([Message("t", None, b"new", (), 0)])
        assert [record.value for record in await holds.poll(10, 0)] == [b"new"]
        await holds.leave()
        comes = await broker.join("workers", ["t"], "comes")
        assert [record.value for record in await comes.poll(10, 0)] == [b"new"]


async def test_the_smallest_limit_lets_each_partition_have_its_turn(tmp_path: Path, clock: Clock) -> None:
    async with process(tmp_path, clock) as broker:
        member = await broker.join("workers", ["t"], "m")
        await broker.produce([Message("t", None, b"x", (), n) for n in range(4) for _ in range(9)])
        polls = [await member.poll(1, 0) for _ in range(8)]
        assert sorted(record.partition for (record,) in polls) == [0, 0, 1, 1, 2, 2, 3, 3]
