"""The publisher: without any broker, at a real one, and after a fatal error made by librdkafka's own hook for it."""

import asyncio
import ctypes
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from minutewheel.broker.errors import BrokerError, Unpublishable
from minutewheel.broker.kafka import KafkaBroker
from minutewheel.broker.kafka_client import Connection
from minutewheel.broker.kafka_producer import Publisher, legible
from minutewheel.broker.kafka_topics import TopicLimits
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message

NOWHERE = Connection("127.0.0.1:1")
PATIENCE_S = 30
FENCED = confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH


def publisher(connection: Connection, **more: int) -> Publisher:
    options = {"message_timeout_ms": 10_000, "max_message_bytes": 20_000, "queue_bytes": 1_000_000, "linger_ms": 2}
    return Publisher(connection, **(options | more))


@pytest.fixture
async def lonely() -> AsyncIterator[Publisher]:
    """One whose messages nobody takes."""
    made = publisher(NOWHERE)
    yield made
    await made.close()


def messages(topic: str, count: int, size: int = 0) -> list[Message]:
    return [Message(topic, None, b"%d" % n + b" " * size, (), 0) for n in range(count)]


async def values(broker: KafkaBroker, topic: str) -> list[bytes]:
    """All there is in partition 0."""
    (bounds,) = await broker.bounds(topic, [0])
    found: list[bytes] = []
    at = bounds.start
    while at < bounds.end:
        fetched = await broker.fetch(topic, 0, at, 2_000, PATIENCE_S * 1_000)
        found += [(record.value or b"").strip() for record in fetched.records]
        at = fetched.next_offset
    return found


# ---- without a broker


async def test_a_purge_answers_all_who_wait_with_errors_that_are_not_final(lonely: Publisher) -> None:
    calls = [asyncio.create_task(lonely.publish(messages("t", 3_000))) for _ in range(2)]
    async with asyncio.timeout(PATIENCE_S):
        while lonely.outstanding() < 4_000:  # noqa: ASYNC110 - what librdkafka holds is announced by nothing
            await asyncio.sleep(0)
        lonely.purge()
        answers = [answer for each in await asyncio.gather(*calls) for answer in each]
    assert len(answers) == 6_000
    assert all(isinstance(answer, BrokerError) and not isinstance(answer, Unpublishable) for answer in answers)
    assert lonely.outstanding() == 0


async def test_a_purge_counts_for_those_whose_mind_was_made_up_before_it(lonely: Publisher) -> None:
    before = lonely.purges
    lonely.purge()
    async with asyncio.timeout(PATIENCE_S):
        answers = await lonely.publish(messages("t", 10), before)
    assert [type(answer) for answer in answers] == [BrokerError] * 10


async def test_the_end_answers_one_who_waits_for_room() -> None:
    made = publisher(NOWHERE, queue_bytes=1)
    call = asyncio.create_task(made.publish(messages("t", 1_000, size=1_000)))
    async with asyncio.timeout(PATIENCE_S):
        while made.outstanding() < 40:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        assert made.outstanding() < 1_000
        await made.close()
        assert {type(answer) for answer in await call} == {BrokerError}


async def test_what_nobody_takes_is_given_up_in_time() -> None:
    made = publisher(NOWHERE, message_timeout_ms=300)
    async with asyncio.timeout(PATIENCE_S):
        (answer,) = await made.publish(messages("t", 1))
    assert type(answer) is BrokerError
    await made.close()


@pytest.mark.parametrize(("name", "good"), [("mw_id", True), ("größe", True), ("a\x00b", False), ("\udc80", False)])
def test_a_header_name_that_the_driver_would_spoil_is_found(name: str, good: bool) -> None:
    assert legible([("first", None), (name, b"")]) is good


# ---- at a real broker


@pytest.mark.real
async def test_case_40_all_are_delivered_and_told_of_through_a_queue_that_is_far_too_small(corner: Any) -> None:
    broker = await corner.open(max_message_bytes=20_000, queue_bytes=1)
    topic = await corner.topic(broker)
    batches = [messages(topic, 50_000)[at : at + 10_000] for at in range(0, 50_000, 10_000)]
    answers = await asyncio.gather(*map(broker.produce, batches))
    offsets = [answer.offset for each in answers for answer in each if isinstance(answer, Produced)]
    assert sorted(offsets) == list(range(50_000))
    assert Counter(await values(broker, topic)) == Counter(b"%d" % n for n in range(50_000))


@pytest.mark.real
async def test_case_40_an_end_half_way_leaves_each_either_delivered_or_answered_with_an_error(corner: Any) -> None:
    broker, other = await corner.open(max_message_bytes=20_000, queue_bytes=1), await corner.open()
    topic = await corner.topic(other)
    sent = messages(topic, 40_000, size=500)
    call = asyncio.create_task(broker.produce(sent))
    async with asyncio.timeout(PATIENCE_S):
        while (await other.bounds(topic, [0]))[0].end == 0:  # noqa: ASYNC110 - the log announces nothing
            await asyncio.sleep(0)
    await broker.close()
    answers = await call
    log = Counter(await values(other, topic))
    told = Counter(b"%d" % n for n, answer in enumerate(answers) if isinstance(answer, Produced))
    assert len(answers) == len(sent)
    assert told <= log
    assert set(log.values()) == {1}
    assert 0 < told.total() < len(sent)


@pytest.mark.real
async def test_case_41_one_too_large_fails_alone(corner: Any) -> None:
    """The topic's own limit was lowered below the client's: the broker refuses whole sets for the sake of one."""
    broker = await corner.open(limits=TopicLimits(max_message_bytes=3_000), message_timeout_ms=10_000, linger_ms=50)
    topic = await corner.topic(broker)
    sent = [Message(topic, None, bytes(4_000 if n == 7 else 20), (), 0) for n in range(40)]
    answers = await broker.produce(sent)
    assert isinstance(answers[7], Unpublishable)
    assert answers[7].reason == "too_large"
    assert [n for n, answer in enumerate(answers) if not isinstance(answer, Produced)] == [7]
    assert len(await values(broker, topic)) == 39


def fail_for_good(producer: confluent_kafka.Producer) -> None:
    """Raise a fatal error in a producer, by librdkafka's hook for tests (the client's handle follows the header)."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    handle = ctypes.cast(id(producer) + object.__basicsize__, ctypes.POINTER(ctypes.c_void_p))[0]
    hook = library.rd_kafka_test_fatal_error
    hook.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
    assert hook(handle, FENCED, b"planted") == 0


@pytest.mark.real
async def test_after_a_fatal_error_a_new_producer_goes_on(corner: Any) -> None:
    broker = await corner.open()
    topic = await corner.topic(broker)
    made = publisher(corner.connection)
    assert isinstance((await made.publish(messages(topic, 1)))[0], Produced)
    for _ in range(2):
        fail_for_good(made._producer)
        async with asyncio.timeout(PATIENCE_S):
            answers = await made.publish(messages(topic, 100))
            assert not any(isinstance(answer, Unpublishable) for answer in answers)
            while not isinstance((await made.publish(messages(topic, 1)))[0], Produced):
                continue
    await made.close()
