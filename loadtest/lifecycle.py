"""What does a task cost from its submission to its end, and whom?

A dispatcher and a worker run in processes of their own. Tasks that are due at once are submitted by the client, filed,
fired, run by a handler that does nothing, and settled by their outcomes. The test ends when the store says of each
task that it is done; none may be missing on the due topic.
"""

import asyncio
import secrets
from collections.abc import Sequence

from msgspec import Struct

from ..broker.compose import Submission
from ..settings import Settings
from ..store.task import SHARDS
from ..wiring import Installation, opened
from ..worker import Accepted
from .roles import Role, Used, role
from .serving import PAYLOAD, Meter, Tell, keys_of, published, rows_of
from .stage import QUEUE, LoadTestFailed, staged

WARM_UP = 64
"""Tasks that go first: when they are done, both processes serve all shards."""
PATIENCE_S = 120.0
PATIENCE_S_A_TASK = 0.01
LOOK_S = 0.05


class LifecycleReport(Struct, frozen=True, kw_only=True):
    """CPU time in microseconds a task, for each role; the budget has no figure for the whole life.

    `repeated` are the records on the due topic beyond one a task, which come from acknowledgements that were late.
    """

    tasks: int
    done: int
    started: int
    published: int
    repeated: int
    seconds: float
    accepted_s: float
    tasks_per_s: float
    client_cpu_us_task: float
    dispatcher_cpu_us_task: float
    worker_cpu_us_task: float


async def run_lifecycle(settings: Settings, tasks: int, tell: Tell) -> LifecycleReport:
    """Measure, on a fleet of this test's own."""
    async with (
        staged(settings) as own,
        role("dispatcher", own) as dispatcher,
        role("worker", own) as worker,
        opened(own) as installation,
    ):
        for one in (dispatcher, worker):
            await one.used()  # it answers as soon as it is up, or has ended and says so
        await _run(installation, list(keys_of(secrets.token_hex(3), WARM_UP, range(SHARDS))), _silent)
        return await _measure(installation, dispatcher, worker, tasks, tell)


async def _measure(
    installation: Installation, dispatcher: Role, worker: Role, tasks: int, tell: Tell
) -> LifecycleReport:
    ids = list(keys_of(secrets.token_hex(3), tasks, range(SHARDS)))
    before = [await dispatcher.used(), await worker.used()]
    meter = Meter()
    accepted_s, client_cpu_s = await _run(installation, ids, tell)
    seconds = meter.seconds()
    after = [await dispatcher.used(), await worker.used()]
    dispatcher_us, worker_us = (_us(one, other, tasks) for one, other in zip(before, after, strict=True))
    records = await published(installation)
    wanted = set(ids)
    on_topic = [task_id for task_id in records if task_id in wanted]
    if set(on_topic) != wanted:
        raise LoadTestFailed(f"of {tasks} tasks, {len(set(on_topic))} were published")
    return LifecycleReport(
        tasks=tasks,
        done=tasks,
        started=after[1].started - before[1].started,
        published=len(wanted),
        repeated=len(on_topic) - len(wanted),
        seconds=round(seconds, 3),
        accepted_s=round(accepted_s, 3),
        tasks_per_s=round(tasks / seconds, 1),
        client_cpu_us_task=round(client_cpu_s / tasks * 1_000_000, 1),
        dispatcher_cpu_us_task=dispatcher_us,
        worker_cpu_us_task=worker_us,
    )


async def _run(installation: Installation, ids: Sequence[str], tell: Tell) -> tuple[float, float]:
    """Submit these and wait until all are done: seconds and CPU seconds until they were accepted."""
    meter, accepted = Meter(), 0
    submissions = (Submission(id=task_id, queue=QUEUE, payload=PAYLOAD, delay_ms=0) for task_id in ids)
    async for answer in installation.client().submit_many(submissions):
        accepted += isinstance(answer, Accepted)
        tell("accepted", accepted)
    if accepted != len(ids):
        raise LoadTestFailed(f"of {len(ids)} tasks, {accepted} were accepted")
    accepted_s, cpu_s = meter.seconds(), meter.cpu_s()
    await until_done(installation, ids, tell)
    return accepted_s, cpu_s


async def until_done(installation: Installation, ids: Sequence[str], tell: Tell) -> None:
    """First until there are as many outcomes, then until the store says so of each."""
    patience_s, topic = PATIENCE_S + len(ids) * PATIENCE_S_A_TASK, installation.topics.outcomes
    try:
        async with asyncio.timeout(patience_s):
            begun = sum(bounds.start for bounds in await installation.broker.bounds(topic, range(SHARDS)))
            while (outcomes := await _outcomes(installation, topic) - begun) < len(ids):
                tell("run", outcomes)
                await asyncio.sleep(LOOK_S)
            left = list(ids)
            while left := await _not_done(installation, left):
                tell("done", len(ids) - len(left))
                await asyncio.sleep(LOOK_S)
            tell("done", len(ids))
    except TimeoutError:
        raise LoadTestFailed(f"not all tasks were done within {patience_s:.0f} s") from None


async def _outcomes(installation: Installation, topic: str) -> int:
    return sum(bounds.end for bounds in await installation.broker.bounds(topic, range(SHARDS)))


async def _not_done(installation: Installation, ids: Sequence[str]) -> list[str]:
    done = {row.key.partition("/")[2] for row in await rows_of(installation, ids) if row.state == "done"}
    return [task_id for task_id in ids if task_id not in done]


def _us(before: Used, after: Used, tasks: int) -> float:
    return round((after.cpu_s - before.cpu_s) / tasks * 1_000_000, 1)


def _silent(name: str, completed: int) -> None:
    """The warm-up has no bar."""
