"""How do a load test's tasks come into a real dispatcher, and when has it come how far?

The submissions are records of their own in the submit log, as any producer writes them, of keys that fall into the
chosen shards. The dispatcher is the product's own, in this process, so the CPU time of the process is its. What it has
done is read from its own counts; what became of the tasks, from the store and the topics.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from ..broker.compose import Composer, Submission
from ..broker.due import parse_due
from ..broker.form import DEFAULT_TENANT
from ..broker.partitioner import shard_of
from ..broker.port import Produced
from ..dispatcher.dispatcher import Dispatcher
from ..dispatcher.shard import Shard
from ..settings import Settings
from ..store.task import SHARDS, TaskRow
from ..wiring import Installation, opened
from .stage import QUEUE, LoadTestFailed

PAYLOAD = b"x" * 74
"""With it a filed record has some 136 bytes, as in the budget."""
PRODUCED_AT_ONCE = 20_000
LOOK_S = 0.005
START_S = 60.0
FETCH_RECORDS = 5_000


class Tell(Protocol):
    """Takes how much of a stage is done."""

    def __call__(self, name: str, completed: int) -> None: ...


class Meter:
    """Elapsed seconds, and the CPU time of all threads of this process, from its making on."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def cpu_s(self) -> float:
        return time.process_time() - self._cpu


def keys_of(run: str, count: int, shards: Iterable[int]) -> Iterator[str]:
    """So many ids of tasks whose shards are among these."""
    wanted, number = frozenset(shards), 0
    while count:
        number += 1
        task_id = f"{run}-{number}"
        if shard_of(f"{DEFAULT_TENANT}/{task_id}") in wanted:
            count -= 1
            yield task_id


async def submit(installation: Installation, ids: Sequence[str], due_ms: Sequence[int], tell: Tell) -> None:
    """Produce a submission for each; all of them are acknowledged at the end."""
    composer = Composer(installation.topics, installation.limits)
    for at in range(0, len(ids), PRODUCED_AT_ONCE):
        some = zip(ids[at : at + PRODUCED_AT_ONCE], due_ms[at : at + PRODUCED_AT_ONCE], strict=True)
        messages = [composer.submit(Submission(id=id_, queue=QUEUE, payload=PAYLOAD, due=due)) for id_, due in some]
        answers = await installation.broker.produce(messages)
        failed = next((answer for answer in answers if not isinstance(answer, Produced)), None)
        if failed:
            raise failed
        tell("submitted", at + len(messages))


@asynccontextmanager
async def dispatching(installation: Installation, shards: int = SHARDS) -> AsyncIterator[Dispatcher]:
    """A dispatcher that has claimed so many shards, for the length of the block."""
    dispatcher = installation.dispatcher()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(dispatcher.run())
        try:
            await until(lambda: len(claimed(dispatcher)) >= shards, START_S, "claim the shards")
            yield dispatcher
        finally:
            dispatcher.stop()
            await asyncio.wait([running])


def claimed(dispatcher: Dispatcher) -> list[Shard]:
    return [shard for shard in dispatcher.shards.values() if shard.claimed]


def applied(dispatcher: Dispatcher) -> int:
    return sum(shard.context.counts.applied for shard in claimed(dispatcher))


def fired(dispatcher: Dispatcher) -> int:
    return sum(shard.context.counts.fired for shard in claimed(dispatcher))


def waiting(dispatcher: Dispatcher, minutes: Iterable[int]) -> int:
    """How many tasks of these minutes are in memory."""
    minutes = list(minutes)
    return sum(shard.context.memory.count(minute) for shard in claimed(dispatcher) for minute in minutes)


async def until(
    reached: Callable[[], bool],
    patience_s: float,
    what: str,
    *,
    look: Callable[[], None] | None = None,
    look_s: float = LOOK_S,
) -> None:
    """Look often, and tell `look`. `LoadTestFailed` if it takes longer than this to do `what`."""
    give_up = time.perf_counter() + patience_s
    while not reached():
        if time.perf_counter() > give_up:
            raise LoadTestFailed(f"it took more than {patience_s:.0f} s to {what}")
        if look:
            look()
        await asyncio.sleep(look_s)


async def file(settings: Settings, ids: Sequence[str], due_ms: Sequence[int], patience_s: float, tell: Tell) -> None:
    """Submit these, and let a dispatcher file them, which then leaves the fleet."""
    async with opened(settings) as installation:
        await submit(installation, ids, due_ms, tell)
        async with dispatching(installation) as dispatcher:
            await until(
                lambda: applied(dispatcher) >= len(ids),
                patience_s,
                "file the tasks",
                look=lambda: tell("filed", applied(dispatcher)),
            )
            tell("filed", len(ids))


async def rows_of(installation: Installation, ids: Iterable[str]) -> list[TaskRow]:
    """Their task rows, in any order."""
    by_shard: dict[int, list[str]] = {}
    for task_id in ids:
        key = f"{DEFAULT_TENANT}/{task_id}"
        by_shard.setdefault(shard_of(key), []).append(key)
    return [row for shard, keys in by_shard.items() for row in await installation.store.tasks(shard, keys)]


async def published(installation: Installation) -> list[str]:
    """The ids of all records on the due topic, a repeated one twice."""
    topic = installation.topics.due(QUEUE)
    ids: list[str] = []
    for partition, bounds in enumerate(await installation.broker.bounds(topic, range(SHARDS))):
        offset = bounds.start
        while offset < bounds.end:
            fetched = await installation.broker.fetch(topic, partition, offset, FETCH_RECORDS, 1_000)
            ids += [parse_due(record).id for record in fetched.records]
            offset = fetched.next_offset
    return ids
