"""What both clients do, in the same tests: `AsyncClient` in the loop, `Client` from a thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from minutewheel import App, Client, InvalidTask, NoAnswer, NotAccepted, Queue, Submission, submission
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.partitioner import shard_of
from minutewheel.testing import START, VirtualClient, virtual
from minutewheel.worker import Accepted, Loop, Refused

Do = Callable[..., Any]
ON_TIME = START + timedelta(hours=1)


class Colour:
    """One kind of client: `do` calls one of its methods, `within` does something in its loop."""

    def __init__(self, client: VirtualClient, loop: Loop | None) -> None:
        self.inner = client
        self.client = Client(client, loop) if loop else client
        self._loop = loop

    async def do(self, name: str, *arguments: Any, **named: Any) -> Any:
        method = getattr(self.client, name)
        if self._loop:
            return await asyncio.to_thread(lambda: _listed(method(*arguments, **named)))
        answer = method(*arguments, **named)
        return [one async for one in answer] if hasattr(answer, "__aiter__") else await answer

    async def advance(self, **time: Any) -> None:
        if self._loop:
            await asyncio.to_thread(self._loop.call, self.inner.advance(**time))
        else:
            await self.inner.advance(**time)


def _listed(answer: Any) -> Any:
    return list(answer) if isinstance(answer, Iterator) else answer


app = App("app")


@app.task(queue="mail")
async def run(payload: dict[str, Any]) -> None:
    if payload.get("fail"):
        raise ValueError("no such address")


@pytest.fixture(params=["async", "sync"])
async def colour(request: pytest.FixtureRequest) -> AsyncIterator[Colour]:
    if request.param == "async":
        async with virtual(app) as client:
            yield Colour(client, None)
        return
    loop, stack = Loop(), AsyncExitStack()
    client = await asyncio.to_thread(loop.call, stack.enter_async_context(virtual(app)))
    yield Colour(client, loop)
    await asyncio.to_thread(loop.call, stack.aclose())
    loop.close()


async def test_a_submission_is_accepted_at_a_position_of_its_shard(colour: Colour) -> None:
    accepted = await colour.do("submit", submission({"n": 1}, queue="mail", id="1", tenant="acme", at=ON_TIME))
    assert accepted.key == "acme/1"
    assert (accepted.partition, accepted.offset) == (shard_of("acme/1"), 0)
    view = await colour.do("get", "1", tenant="acme")
    assert (view.state, view.queue, view.attempt) == ("scheduled", "mail", 1)
    assert view.due_ms == int(ON_TIME.timestamp() * 1_000)
    assert view.why == "due in 3600000 ms"
    assert not view.final
    await colour.advance(hours=1)
    view = await colour.do("wait", "1", tenant="acme")
    assert view.state == "done"
    assert view.final
    assert await colour.do("get", "1") is None, "another tenant's"


async def test_what_would_be_refused_is_refused_before_it_is_sent(colour: Colour) -> None:
    wrong = {
        "bad_queue": {"queue": "no such name!"},
        "bad_id": {"id": "a\n"},
        "due_in_seconds": {"at": 1_767_225_600},
        "bad_value": {"priority": 9},
        "due_and_delay": {"at": ON_TIME, "delay": timedelta(1)},
        "bad_due": {"at": "2026-12-01T09:00:00"},
    }
    for code, options in wrong.items():
        with pytest.raises(InvalidTask) as caught:
            await colour.do("submit", submission({}, **{"queue": "mail", **options}))
        assert caught.value.code == code
    ends = await colour.inner._broker.bounds("minutewheel.submit", range(64))
    assert sum(bounds.end for bounds in ends) == 0


async def test_an_undeclared_queue_is_refused_where_dispatchers_declare_none(colour: Colour) -> None:
    colour.inner._undeclared = False
    with pytest.raises(InvalidTask, match="nobody has declared"):
        await colour.do("submit", submission({}, queue="sms"))
    await colour.do("put_queue", Queue("sms", note="short messages"))
    await colour.do("submit", submission({}, queue="sms"))
    assert [queue.name for queue in await colour.do("queues")] == ["mail", "sms"]


async def test_many_are_answered_each_in_their_order(colour: Colour) -> None:
    soon = START + timedelta(minutes=2)
    wanted = [submission({}, queue="mail", id=f"{n}", at=soon, priority=9 if n % 7 == 3 else 2) for n in range(1_100)]
    answers = await colour.do("submit_many", wanted)
    assert [answer.index for answer in answers] == list(range(1_100))
    for n, answer in enumerate(answers):
        if n % 7 == 3:
            assert isinstance(answer, Refused)
            assert isinstance(answer.error, InvalidTask)
            assert answer.error.code == "bad_value"
        else:
            assert isinstance(answer, Accepted)
            assert (answer.key, answer.partition) == (f"default/{n}", shard_of(f"default/{n}"))
    places = {(a.partition, a.offset, a.item) for a in answers if isinstance(a, Accepted)}
    assert len(places) == sum(isinstance(a, Accepted) for a in answers), "each stands somewhere else"
    await colour.advance(minutes=2)
    assert sorted(run.key for run in colour.inner.runs) == sorted(a.key for a in answers if isinstance(a, Accepted))


async def test_the_positions_of_many_are_true(colour: Colour) -> None:
    """The batch record of a place holds, at its item, the task that was said to be there."""
    answers = await colour.do("submit_many", [submission({}, queue="mail", id=f"{n}", at=ON_TIME) for n in range(300)])
    for answer in answers:
        fetched = await colour.inner._broker.fetch("minutewheel.submit", answer.partition, answer.offset, 1, 0)
        item = msgspec.msgpack.decode(fetched.records[0].value)[answer.item]
        assert f"default/{item['id']}" == answer.key


async def test_what_is_not_acknowledged_says_so(colour: Colour) -> None:
    class Down:
        async def produce(self, messages: Any) -> Any:
            return [BrokerError("no answer")] * len(messages)

    colour.inner._installation.broker = Down()  # type: ignore[assignment]
    with pytest.raises(NotAccepted, match="no answer"):
        await colour.do("submit", submission({}, queue="mail"))
    answers = await colour.do("submit_many", [submission({}, queue="mail"), submission({}, queue="mail", priority=0)])
    assert [type(answer.error) for answer in answers] == [NotAccepted, InvalidTask]


async def test_commands_are_answered_with_the_truth(colour: Colour) -> None:
    """Case 50, without a race."""
    first = await colour.do("submit_answered", submission({}, queue="mail", id="1", at=ON_TIME))
    assert (first.answer, first.key) == ("accepted", "default/1")
    same = submission({}, queue="mail", id="1", at=ON_TIME, receipt="mine")
    assert (await colour.do("submit_answered", same)).answer == "duplicate"
    other = submission({"n": 2}, queue="mail", id="1", at=ON_TIME)
    assert (await colour.do("submit_answered", other)).answer == "id_conflict"
    moved = await colour.do("reschedule", "1", at=ON_TIME + timedelta(hours=1))
    assert (moved.answer, moved.due_ms) == ("rescheduled", int((ON_TIME + timedelta(hours=1)).timestamp() * 1_000))
    assert (await colour.do("cancel", "1")).answer == "cancelled"
    assert (await colour.do("cancel", "1")).answer == "cancelled"
    assert (await colour.do("cancel", "2")).answer == "unknown"
    assert (await colour.do("get", "1")).state == "cancelled"
    await colour.advance(hours=3)
    assert colour.inner.runs == []


async def test_a_dead_letter_is_redriven_or_discarded(colour: Colour) -> None:
    for name in ("1", "2"):
        await colour.do("submit", submission({"fail": True}, queue="mail", id=name, max_attempts=1))
    await colour.advance()
    dead = await colour.do("wait", "1")
    assert (dead.state, "no such address" in dead.why) == ("dead", True)
    assert (await colour.do("redrive", "1", delay=timedelta(hours=1))).answer == "redriven"
    assert (await colour.do("discard", "2")).answer == "discarded"
    assert (await colour.do("discard", "1")).answer == "not_dead"
    await colour.advance(hours=1)
    assert [run.key for run in colour.inner.runs] == ["default/1", "default/2", "default/1"]


async def test_no_answer_in_time_says_that_it_is_not_known(colour: Colour) -> None:
    class Slow:
        """The owner of the shard is away."""

        def __getattr__(self, name: str) -> Any:
            return getattr(installation, name)

        async def apply(self) -> None:
            return

    installation = colour.inner._installation
    colour.inner._installation = Slow()  # type: ignore[assignment]
    with pytest.raises(NoAnswer, match="accepted, but not answered within 5 ms"):
        await colour.do("cancel", "1", within_ms=5)


async def test_a_plain_client_asks_its_iterator_in_the_callers_thread(colour: Colour) -> None:
    if isinstance(colour.client, VirtualClient):
        return
    threads: list[threading.Thread] = []

    def some() -> Iterator[Submission]:
        threads.append(threading.current_thread())
        yield submission({}, queue="mail")

    client = colour.client
    caller: list[threading.Thread] = []

    def call() -> None:
        caller.append(threading.current_thread())
        list(client.submit_many(some()))

    await asyncio.to_thread(call)
    assert threads == caller
