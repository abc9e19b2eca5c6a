"""What only the real broker can meet: transactions of other producers, topics made anew, two installations."""

import asyncio
from typing import Any

import pytest
from confluent_kafka import Producer
from minutewheel.broker.errors import BrokerError, OffsetGone, Unpublishable
from minutewheel.broker.kafka import KafkaBroker
from minutewheel.broker.kafka_client import Connection
from minutewheel.broker.kafka_topics import TopicLimits
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message

WAIT_MS = 10_000
PATIENCE_S = 30


def transaction(producer: Any, topic: str, values: list[bytes]) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(PATIENCE_S)


@pytest.mark.real
async def test_transactional_gaps_do_not_wedge_intake(corner: Any) -> None:
    broker = await corner.open()
    topic = await corner.topic(broker)
    producer = Producer({"bootstrap.servers": corner.connection.servers, "transactional.id": corner.prefix})
    await asyncio.to_thread(producer.init_transactions)
    await asyncio.to_thread(transaction, producer, topic, [b"aborted"] * 3)
    await asyncio.to_thread(producer.abort_transaction)
    await asyncio.to_thread(transaction, producer, topic, [b"committed"] * 2)
    await asyncio.to_thread(producer.commit_transaction)
    await asyncio.to_thread(transaction, producer, topic, [b"open"])
    assert isinstance((await broker.produce([Message(topic, None, b"plain", (), 0)]))[0], Produced)

    # Three and their mark, two and their mark; then it ends for all who read committed records only.
    assert (await broker.bounds(topic, [0]))[0].end == 7
    values, at = await read(broker, topic, 0, 7)
    assert values == [b"committed"] * 2
    # The gaps say nothing of what is behind them: the reader stands where it got to, and hears of what comes.
    waiting = asyncio.create_task(broker.fetch(topic, 0, at, 100, WAIT_MS))
    await asyncio.to_thread(producer.abort_transaction)
    fetched = await waiting
    found = [record.value for record in fetched.records]
    rest, at = await read(broker, topic, fetched.next_offset, 10)
    assert found + rest == [b"plain"]
    assert at == 10
    assert (await broker.bounds(topic, [0]))[0].end == 10


async def read(broker: KafkaBroker, topic: str, at: int, end: int) -> tuple[list[bytes | None], int]:
    """As intake does it: from where the fetch before said, until the end."""
    values: list[bytes | None] = []
    async with asyncio.timeout(PATIENCE_S):
        while at < end:
            fetched = await broker.fetch(topic, 0, at, 1, WAIT_MS)
            values += [record.value for record in fetched.records]
            at = fetched.next_offset
    return values, at


@pytest.mark.real
async def test_a_topic_made_anew_is_never_read_as_the_old_one(corner: Any) -> None:
    broker, other = await corner.open(), await corner.open()
    topic = await corner.topic(broker)
    await broker.produce([Message(topic, None, b"old", (), 0)] * 5)
    assert (await broker.fetch(topic, 0, 0, 10, WAIT_MS)).incarnation == 1
    waiting = asyncio.create_task(broker.fetch(topic, 0, 5, 10, 60_000))
    await other.delete_topic(topic)
    await other.create_topics({topic: 1})
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(BrokerError):
            await waiting
        await other.produce([Message(topic, None, b"new", (), 0)] * 8)
        while True:
            try:
                fetched = await broker.fetch(topic, 0, 5, 10, WAIT_MS)
            except OffsetGone:
                raise
            except BrokerError:
                continue
            break
    # It has grown past the old offset, so the offset alone would not tell: the incarnation does.
    assert fetched.incarnation == 2
    assert (await other.bounds(topic, [0]))[0].incarnation == 2


@pytest.mark.real
async def test_what_is_wrong_with_a_topic_is_found(corner: Any) -> None:
    broker = await corner.open()
    topic = await corner.topic(broker, 2)
    assert await broker.topic_faults({topic: 2}) == []
    strict = await corner.open(limits=TopicLimits(retention_ms=30 * 86_400_000))
    assert {fault.what for fault in await strict.topic_faults({topic: 3})} == {"partitions", "retention"}
    assert [fault.what for fault in await broker.topic_faults({f"{topic}.other": 1})] == ["missing"]


@pytest.mark.real
async def test_a_topic_that_is_not_there_is_final_and_its_neighbours_go_out(corner: Any) -> None:
    broker = await corner.open()
    topic = await corner.topic(broker)
    there, gone = Message(topic, None, b"", (), 0), Message(f"{topic}.gone", None, b"")
    answers = await broker.produce([gone, there, Message(topic, None, b"", (), 7)])
    assert isinstance(answers[1], Produced)
    assert [a.reason for a in answers if isinstance(a, Unpublishable)] == ["no_such_topic"] * 2


async def test_without_brokers_every_answer_is_an_error_that_may_pass_and_the_end_comes_at_once() -> None:
    broker = await KafkaBroker.open(Connection("127.0.0.1:1", answer_ms=500), "nowhere")
    async with asyncio.timeout(PATIENCE_S):
        (answer,) = await broker.produce([Message("t", None, b"")])
        assert type(answer) is BrokerError
        for question in (broker.fetch("t", 0, 0, 1, 0), broker.bounds("t", [0]), broker.topics(), broker.time_ms()):
            with pytest.raises(BrokerError):
                await question
        await broker.close()
        await broker.close()
