"""Looks that are shared: how few there are, how fresh each answer is, and who is told of an error."""

import asyncio
from collections.abc import Sequence

import pytest
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.kafka_looks import SharedLooks
from minutewheel.broker.port import Bounds

pytestmark = pytest.mark.pure


class Log:
    """A topic whose ends grow; each look takes until `go_on` is set."""

    def __init__(self) -> None:
        self.end = 0
        self.looks: list[list[int]] = []
        self.go_on = asyncio.Event()

    async def look(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        self.looks.append(list(partitions))
        end = self.end
        await self.go_on.wait()
        if 9 in partitions:
            raise BrokerError(f"{topic} has no partition 9")
        return [Bounds(0, end + partition, 1) for partition in partitions]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_many_who_ask_at_once_share_one_look() -> None:
    log = Log()
    shared = SharedLooks(log.look)
    log.go_on.set()
    answers = await asyncio.gather(*(shared.bounds("submit", [n, 0]) for n in range(5)))
    assert log.looks == [[0, 1, 2, 3, 4]]
    assert answers == [[Bounds(0, n, 1), Bounds(0, 0, 1)] for n in range(5)]


async def test_who_comes_during_a_look_gets_the_next_one() -> None:
    """What the one under way will say may be of before the question."""
    log = Log()
    shared = SharedLooks(log.look)
    first = asyncio.ensure_future(shared.bounds("submit", [0]))
    await turns()
    log.end = 7
    later = [asyncio.ensure_future(shared.bounds("submit", [n])) for n in (0, 1)]
    other = asyncio.ensure_future(shared.bounds("outcomes", [2]))
    await turns()
    assert log.looks == [[0], [2]]  # another topic's is no reason to wait
    log.go_on.set()
    assert await first == [Bounds(0, 0, 1)]
    assert await asyncio.gather(*later) == [[Bounds(0, 7, 1)], [Bounds(0, 8, 1)]]
    assert (await other, log.looks) == ([Bounds(0, 9, 1)], [[0], [2], [0, 1]])


async def test_who_asks_for_what_is_not_there_is_told_alone() -> None:
    log = Log()
    shared = SharedLooks(log.look)
    log.go_on.set()
    answers = await asyncio.gather(*(shared.bounds("submit", [n]) for n in (0, 9, 1)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [list, BrokerError, list]
    with pytest.raises(BrokerError, match="no partition 9"):
        await shared.bounds("submit", [9])


async def test_one_who_gives_up_takes_no_look_from_others() -> None:
    log = Log()
    shared = SharedLooks(log.look)
    impatient = asyncio.ensure_future(shared.bounds("submit", [0]))
    other = asyncio.ensure_future(shared.bounds("submit", [1]))
    await turns()
    impatient.cancel()
    await turns()
    log.go_on.set()
    assert await other == [Bounds(0, 1, 1)]
