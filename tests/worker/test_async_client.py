"""What only the client with a loop can do; the rest is in test_client.py, for both."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

from minutewheel import App, Submission, submission
from minutewheel.testing import virtual


async def test_back_pressure_no_more_is_asked_for_than_is_being_sent() -> None:
    asked = 0

    def endless() -> Iterator[Submission]:
        nonlocal asked
        while True:
            asked += 1
            yield submission({}, queue="mail", delay=timedelta(days=1))

    async with virtual(App("app")) as client:
        taken = 0
        async for answer in client.submit_many(endless()):
            assert asked <= taken + 1_000
            taken = answer.index + 1
            if taken == 3_000:
                break
        assert asked == 3_000


async def test_what_comes_asynchronously_is_taken_as_well() -> None:
    async def some() -> AsyncIterator[Submission]:
        for n in range(3):
            yield submission({}, queue="mail", id=f"{n}", delay=timedelta(days=1))

    async with virtual(App("app")) as client:
        assert [answer.index async for answer in client.submit_many(some())] == [0, 1, 2]
