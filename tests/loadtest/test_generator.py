import asyncio
import time
from collections.abc import Callable, Sequence

import pytest
from minutewheel.broker.compose import Composer
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.limits import Limits
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message, Topics
from minutewheel.loadtest import generator
from minutewheel.loadtest.arrivals import Arrival
from minutewheel.loadtest.generator import Generator


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Broker:
    """It answers when it is let, and says when so many messages have come."""

    def __init__(self, wanted: int, answer: Callable[[Message], Produced | BrokerError] | None = None) -> None:
        self.messages: list[Message] = []
        self.came = asyncio.Event()
        self.let = asyncio.Event()
        self._wanted = wanted
        self._answer = answer or (lambda _: Produced(0, 0, 1_000))

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        self.messages += messages
        if len(self.messages) >= self._wanted:
            self.came.set()
        await self.let.wait()
        return [self._answer(message) for message in messages]


def plan(count: int, apart_ms: int = 0, payload_bytes: int = 10) -> list[Arrival]:
    return [Arrival(n * apart_ms, n * apart_ms + 500, str(n), "a", payload_bytes) for n in range(count)]


def made(broker: Broker, limits: Limits | None = None, start_ms: int | None = None) -> Generator:
    return Generator(broker, Composer(Topics(), limits), "run", start_ms or now_ms(), now_ms)


async def test_all_leaves_as_planned_though_nothing_is_answered() -> None:
    broker, start_ms = Broker(30), now_ms()
    generator = made(broker, start_ms=start_ms)
    running = asyncio.create_task(generator.run(plan(30, apart_ms=10), asyncio.Event()))
    await asyncio.wait_for(broker.came.wait(), 20)
    assert generator.accepted_keys == set()
    assert [one.key for one in generator.sent] == [f"a/run-{n}" for n in range(30)]
    assert [one.due_ms for one in generator.sent] == [start_ms + n * 10 + 500 for n in range(30)]
    assert all(one.sent_ms >= start_ms + n * 10 for n, one in enumerate(generator.sent)), "none before its time"
    broker.let.set()
    await running
    assert len(generator.accepted_keys) == 30
    assert {one.accepted_ms for one in generator.sent} == {1_000}


async def test_what_has_no_room_is_not_sent_and_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "IN_FLIGHT_MAX", 5)
    broker = Broker(5)
    made_one = made(broker)
    running = asyncio.create_task(made_one.run(plan(12), asyncio.Event()))
    await asyncio.wait_for(broker.came.wait(), 20)
    broker.let.set()
    await running
    assert len(broker.messages) == 5
    assert (len(made_one.sent), len(made_one.accepted_keys), made_one.not_sent) == (12, 5, 7)


async def test_what_the_broker_refuses_is_not_accepted_and_not_sent_again() -> None:
    def answer(message: Message) -> Produced | BrokerError:
        return BrokerError("down") if message.key == b"a/run-1" else Produced(0, 0, 7)

    broker = Broker(3, answer)
    broker.let.set()
    generator = made(broker)
    await generator.run(plan(3), asyncio.Event())
    assert [one.accepted_ms for one in generator.sent] == [7, None, 7]
    assert len(broker.messages) == 3


async def test_what_is_too_large_is_not_sent_and_stops_no_other() -> None:
    broker = Broker(2)
    broker.let.set()
    generator = made(broker, Limits(payload_bytes=100))
    large = Arrival(0, 500, "large", "a", 200)
    await generator.run([large, *plan(2)], asyncio.Event())
    assert [one.accepted_ms for one in generator.sent] == [None, 1_000, 1_000]
    assert generator.not_sent == 1


async def test_it_says_which_attempts_are_to_fail() -> None:
    broker = Broker(2)
    broker.let.set()
    generator = made(broker)
    await generator.run([*plan(1), Arrival(0, 500, "bad", "a", 10, 2)], asyncio.Event())
    assert [one.failures for one in generator.sent] == [0, 2]
    assert generator.failures == {"a/run-bad": 2}
    assert b"2 xxxxxxxx" in (broker.messages[1].value or b"")


async def test_it_stops_when_it_is_told_to() -> None:
    broker, stop = Broker(1), asyncio.Event()
    generator = made(broker)
    running = asyncio.create_task(generator.run([*plan(1), Arrival(60_000, 61_000, "late", "a", 1)], stop))
    await asyncio.wait_for(broker.came.wait(), 20)
    stop.set()
    await asyncio.wait_for(running, 20)
    assert len(generator.sent) == 1
    assert generator.accepted_keys == set()


async def test_a_fault_of_its_own_shows() -> None:
    def answer(_: Message) -> Produced:
        raise ZeroDivisionError

    broker = Broker(1, answer)
    broker.let.set()
    with pytest.raises(ExceptionGroup) as failed:
        await made(broker).run(plan(1), asyncio.Event())
    assert failed.group_contains(ZeroDivisionError)
