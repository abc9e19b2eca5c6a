"""Many fetches over one consumer, at a real broker."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from minutewheel.broker.errors import BrokerError, OffsetGone
from minutewheel.broker.kafka_client import Connection
from minutewheel.broker.kafka_reader import Reader
from minutewheel.broker.wire import Message

PATIENCE_S = 30
WAIT_MS = 10_000
COUNT = 12_000
"""More than is read ahead of anybody."""


@pytest.fixture
async def reader(corner: Any) -> AsyncIterator[Reader]:
    made = Reader(corner.connection, group=corner.prefix, fetch_wait_ms=50, poll_ms=20, idle_s=0.2)
    yield made
    await made.close()


@pytest.fixture
async def topic(corner: Any) -> str:
    broker = await corner.open()
    name: str = await corner.topic(broker, 4)
    await broker.produce([Message(name, None, b"%d" % n, (), 0) for n in range(COUNT)])
    return name


@pytest.mark.real
async def test_all_is_read_in_order_however_much_is_asked_for(reader: Reader, topic: str) -> None:
    dice, at = random.Random(1), 0
    async with asyncio.timeout(PATIENCE_S):
        while at < COUNT:
            records, next_offset, end = await reader.read((topic, 0), at, dice.choice((1, 50, 3_000)), WAIT_MS)
            assert [record.offset for record in records] == list(range(at, next_offset))
            assert [record.value for record in records] == [b"%d" % n for n in range(at, next_offset)]
            assert next_offset <= end <= COUNT
            at = next_offset


@pytest.mark.real
async def test_readers_at_different_offsets_of_one_place_are_all_served(reader: Reader, topic: str) -> None:
    offsets = [0, 9_000, 5, 11_999, 4_500]
    async with asyncio.timeout(PATIENCE_S):
        answers = await asyncio.gather(*(reader.read((topic, 0), at, 1, WAIT_MS) for at in offsets))
    assert [answer[0][0].offset for answer in answers] == offsets


@pytest.mark.real
async def test_the_end_is_told_at_once_to_one_who_does_not_wait(reader: Reader, topic: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        assert await reader.read((topic, 1), 0, 10, 0) == ((), 0, 0)
        assert await reader.read((topic, 0), COUNT, 10, 0) == ((), COUNT, COUNT)


@pytest.mark.real
async def test_an_offset_that_is_not_there_is_told_to_those_who_wait_for_it_alone(reader: Reader, topic: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(OffsetGone):
            await reader.read((topic, 0), COUNT + 5, 1, WAIT_MS)
        records, _, _ = await reader.read((topic, 0), 7, 1, WAIT_MS)
    assert [record.value for record in records] == [b"7"]


@pytest.mark.real
async def test_forgetting_a_topic_tells_its_readers(reader: Reader, topic: str) -> None:
    waiting = asyncio.create_task(reader.read((topic, 1), 0, 1, 60_000))
    async with asyncio.timeout(PATIENCE_S):
        while not reader.places():  # noqa: ASYNC110 - the task has only to begin
            await asyncio.sleep(0)
        reader.forget(topic, BrokerError("gone"))
        with pytest.raises(BrokerError, match="gone"):
            await waiting
    assert reader.places() == set()


@pytest.mark.real
async def test_a_place_that_nobody_reads_is_let_go(reader: Reader, topic: str) -> None:
    await reader.read((topic, 0), 0, 1, WAIT_MS)
    assert reader.places() == {(topic, 0)}
    async with asyncio.timeout(PATIENCE_S):
        while reader.places():  # noqa: ASYNC110 - what is let go is announced to nobody
            await asyncio.sleep(0.05)


async def test_silence_is_an_error_and_not_an_end() -> None:
    reader = Reader(Connection("127.0.0.1:1", answer_ms=300), group="g", fetch_wait_ms=10, poll_ms=5, idle_s=1.0)
    async with asyncio.timeout(PATIENCE_S):
        for wait_ms in (0, 100):
            with pytest.raises(BrokerError):
                await reader.read(("t", 0), 0, 1, wait_ms)
        await reader.close()
