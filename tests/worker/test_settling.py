"""A crash at every call that the worker makes, before it has its effect and after."""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minutewheel.broker.errors import BrokerError, Unpublishable
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message
from minutewheel.store.errors import NotApplied, UnknownOutcome
from minutewheel.worker import App, AsyncContext, Reject
from msgspec import Struct

KEYS = [f"acme/{n}" for n in range(3)]


class Mail(Struct):
    pass


async def run_until_crashed(stand: Any, worker: Any) -> None:
    """Run it until its fuse blows, or until there is nothing left to do."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(quietly(worker.run(), stand.crash))
        await stand.until(
            lambda: running.done() or (worker.statistics().polls > 3 and worker.statistics().in_hand == 0)
        )
        worker.stop()


async def quietly(work: Any, crash: Any) -> None:
    try:
        await work
    except* crash:
        pass


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("ending", ["done", "failed"])
async def test_a_crash_at_any_call_loses_no_outcome_and_starts_at_most_once_more(
    stand: Any, fused: Any, after: bool, ending: str
) -> None:
    """For each call in turn: the process dies there; another finds what it left, an hour later."""
    starts: dict[str, int] = {}

    @stand.app.task(queue="mail")
    async def send(mail: Mail, ctx: AsyncContext) -> None:
        starts[ctx.key] = starts.get(ctx.key, 0) + 1
        if ending == "failed":
            raise Reject("no")

    crashes = 0
    for at in range(1, 200):
        starts.clear()
        keys = [f"{key}-{at}" for key in KEYS]
        await stand.publish(*(stand.due(key) for key in keys))
        fuse, broker, ledger = fused(at, after, stand.broker, stand.ledger)
        await run_until_crashed(stand, stand.worker(broker=broker, ledger=ledger, poll_ms=1))
        crashes += fuse.blown
        started_before = dict(starts)
        stand.clock.jump(3_600_000)
        async with stand.running(stand.worker(poll_ms=1)) as worker:
            told = {key: await stand.outcomes(key) for key in keys}
            await stand.until(lambda: worker.statistics().polls > 1 and worker.statistics().uncommitted == 0)
        for key in keys:
            assert told[key][0].kind == ending, (at, key)
            assert 1 <= starts[key] <= 1 + started_before.get(key, 0), (at, key)
        assert await stand.ledger.running(stand.clock.now_ms()) == []
        if not fuse.blown:
            break
    else:
        raise AssertionError("the worker never came to its end")
    assert crashes >= 8


async def test_a_finish_that_was_not_told_is_told_and_not_run_again(stand: Any) -> None:
    """The crash between the finish and the outcome."""
    runs = 0

    @stand.app.task(queue="mail")
    async def send(mail: Mail) -> None:
        nonlocal runs
        runs += 1

    finished = asyncio.Event()

    class Mute:
        """The broker takes no outcome."""

        def __getattr__(self, name: str) -> Any:
            return getattr(stand.broker, name)

        async def produce(self, messages: Any) -> Any:
            finished.set()
            return await asyncio.Event().wait()

    await stand.publish(stand.due(KEYS[0]))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(stand.worker(broker=Mute()).run())
        await finished.wait()
        running.cancel()
    async with stand.running(stand.worker()) as worker:
        (outcome,) = await stand.outcomes(KEYS[0])
    assert (outcome.kind, runs, worker.statistics().finished_before) == ("done", 1, 1)


class Shaky:
    """A port that fails as the list says, each time either before or after its effect, and then works."""

    def __init__(self, inner: Any, failures: list[tuple[type[Exception], bool]], verbs: set[str]) -> None:
        self._inner = inner
        self._failures = failures
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._inner, name)
        if name not in self._verbs:
            return verb

        async def call(*arguments: Any, **named: Any) -> Any:
            if not self._failures:
                return await verb(*arguments, **named)
            kind, after = self._failures.pop(0)
            if after and kind is not NotApplied:
                await verb(*arguments, **named)
            raise kind("shaken")

        return call


failures = st.lists(st.tuples(st.sampled_from([NotApplied, UnknownOutcome]), st.booleans()), max_size=4)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(of_ledger=failures, of_broker=st.lists(st.tuples(st.just(BrokerError), st.booleans()), max_size=3), n=st.uuids())
async def test_failures_of_the_ledger_and_the_broker_cost_no_start(
    stand: Any, of_ledger: Any, of_broker: Any, n: Any
) -> None:
    app = App("shaky")

    @app.task(queue="sms")
    async def fail(mail: Mail) -> None:
        raise Reject("no")

    key = f"acme/{n}"
    await stand.publish(stand.due(key, queue="sms"))
    worker = stand.worker(
        app,
        ledger=Shaky(stand.ledger, list(of_ledger), {"claim", "finish", "release"}),
        broker=Shaky(stand.broker, list(of_broker), {"produce"}),
        poll_ms=1,
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(worker.run())
        while not running.done() and worker.statistics().failed == 0:
            stand.clock.jump(50)
            await asyncio.sleep(0)
        worker.stop()
    for outcome in await stand.outcomes(key):
        assert (outcome.kind, outcome.starts) == ("failed", 1)
    assert worker.statistics().started == 1


async def test_an_outcome_too_large_to_carry_its_record_back_names_its_place(stand: Any) -> None:
    class Narrow:
        def __getattr__(self, name: str) -> Any:
            return getattr(stand.broker, name)

        async def produce(self, messages: list[Message]) -> list[Produced | BrokerError]:
            if any(len(message.value or b"") > 1_000 for message in messages):
                return [Unpublishable("too_large", "1,001 bytes") for _ in messages]
            return await stand.broker.produce(messages)  # type: ignore[no-any-return]

    @stand.app.task(queue="mail")
    async def fail(mail: Mail) -> None:
        raise ValueError("no")

    await stand.publish(stand.due(KEYS[0], payload=b'{"x":"' + b"x" * 2_000 + b'"}'))
    async with stand.running(stand.worker(broker=Narrow())):
        (outcome,) = await stand.outcomes(KEYS[0])
    assert (outcome.kind, outcome.payload) == ("failed", None)
    topic, partition, offset = outcome.due_at
    assert (await stand.broker.fetch(topic, partition, offset, 1, 0)).records[0].key == KEYS[0].encode()
