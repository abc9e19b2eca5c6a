"""Questions to a cluster: how their answers are gathered, and what a real one says."""

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.kafka_admin import Admin, answered
from minutewheel.broker.kafka_client import Connection
from minutewheel.broker.kafka_topics import TopicLimits, TopicPlan, plan
from minutewheel.broker.wire import Message
from minutewheel.deploy.services import down, server, up

PATIENCE_S = 30


async def test_answers_are_gathered_in_order_with_their_exceptions() -> None:
    futures: list[Future[Any]] = [Future() for _ in range(20)]

    def answer() -> None:
        for n, future in reversed(list(enumerate(futures))):
            if n % 5:
                future.set_result(n)
            else:
                future.set_exception(KafkaException(n))

    thread = threading.Thread(target=answer)
    async with asyncio.timeout(PATIENCE_S):
        waiting = asyncio.create_task(answered(futures))
        await asyncio.sleep(0)
        thread.start()
        found = await waiting
    thread.join()
    assert [str(one) for one in found] == [str(n) for n in range(20)]
    assert [isinstance(one, KafkaException) for one in found] == [n % 5 == 0 for n in range(20)]


async def test_what_the_driver_raises_of_an_answer_is_no_answer() -> None:
    """It would end a dispatcher, where the question is to be asked again."""
    future: Future[Any] = Future()
    future.set_exception(RuntimeError("Results length 63 is different from future-map length 64"))
    (found,) = await answered([future])
    assert isinstance(found, KafkaException)
    assert "RuntimeError: Results length 63" in found.args[0].str()


async def test_no_question_has_no_answer() -> None:
    assert await answered([]) == []


async def test_answers_to_one_who_gave_up_disturb_nobody() -> None:
    future: Future[Any] = Future()
    waiting = asyncio.create_task(answered([future]))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    future.set_result(1)
    await asyncio.sleep(0)
    assert await answered([future]) == [1]


async def test_no_answer_is_an_error_of_the_broker() -> None:
    admin = Admin(Connection("127.0.0.1:1", answer_ms=500))
    async with asyncio.timeout(PATIENCE_S):
        for question in (admin.topics(), admin.describe(["t"]), admin.bounds("t", [0]), admin.delete("t")):
            with pytest.raises(BrokerError):
                await question


@pytest.mark.real
async def test_a_topic_from_its_making_to_its_end(corner: Any) -> None:
    admin, name = corner.admin, f"{corner.prefix}.made"
    assert await admin.describe([name]) == {name: None}
    assert await admin.found([name]) == {name: None}
    wanted = plan(corner.prefix, name, 3, TopicLimits(retention_ms=86_400_000))
    await admin.create({name: wanted})
    await admin.create({name: wanted})
    broker = await corner.open()
    await broker.produce([Message(name, None, b"", (), 1)] * 4)
    assert await admin.bounds(name, [2, 1]) == [(0, 0), (0, 4)]
    described = (await admin.describe([name]))[name]
    assert (described.partitions, described.replication) == (3, 1)
    found = (await admin.found([name]))[name]
    assert wanted.options.items() <= found.options.items()
    assert (await admin.topics())[name] == 3
    await admin.delete(name)
    await broker.create_topics({f"{name}.other": 1})
    with pytest.raises(BrokerError):
        await admin.bounds(f"{name}.never", [0])


@pytest.mark.real
async def test_after_a_restart_of_the_broker_the_bounds_are_answered_at_once(tmp_path: Path) -> None:
    """Its partitions have leaders with new numbers; who has the old ones is refused."""
    try:
        connection = Connection(up(["kafka"], tmp_path).kafka)
        asker = Admin(connection)
        await asker.create({"kept": TopicPlan(4, 1, {})})
        async with asyncio.timeout(30):
            while await bounds_of(asker) is None:  # noqa: ASYNC110 - it has been made, and leads its partitions later
                await asyncio.sleep(0.2)
        one = server("kafka", tmp_path)
        await asyncio.to_thread(one.kill)
        await asyncio.to_thread(one.start)
        assert await asker.bounds("kept", range(4)) == [(0, 0)] * 4
    finally:
        down(tmp_path)


async def bounds_of(asker: Admin) -> list[tuple[int, int]] | None:
    try:
        return await asker.bounds("kept", range(4))
    except BrokerError:
        return None
