"""What does this installation do under an open load, in which its processes fail?

The generator, the faults and the looks at owners and processes run side by side; the dispatchers and workers are
processes of their own. When each accepted task has begun, or a while after the last was due and the last fault is
over, the processes are ended, the due topic is read back, and `evaluation` says what it came to.
"""

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..broker.compose import Composer, Submission
from ..broker.due import NotDue, parse_due
from ..broker.form import DEFAULT_TENANT
from ..broker.partitioner import shard_of
from ..broker.port import Broker
from ..coordinator import CoordinatorError
from ..settings import Settings
from ..store.task import SHARDS
from ..wiring import Installation, opened
from ..worker import Accepted
from ..worker.again import until_done
from ..worker.clock import SystemClock
from .arrivals import AHEAD_MS, Arrival, Shape, arrivals
from .crew import Crew, RunFailed, crew, now_ms
from .evaluation import STEP_MS, Delivery, Evidence, tenures_of
from .fault_plan import Fault
from .generator import Generator
from .recording import QUEUE
from .report import Report
from .usage import Usage, used

HEAD_MS = 500
LOOK_S = 0.1
SERVE_S = 90.0
"""To take all shards, and to run the first tasks."""
GRACE_MS = 20_000
"""After all that may have to run out first: a worker's hold, its session, a dispatcher's."""
FETCH_RECORDS = 5_000
FETCH_WAIT_MS = 1_000
READ_S = 300.0
LIBRARIES = ("msgspec", "uvloop", "cassandra-driver", "confluent-kafka", "kazoo")
GENERATOR = "load test"
"""What the load test's own process is called in the report."""


class Order(Struct, frozen=True, kw_only=True):
    """What is to be run. `dispatch` is the command of a dispatcher, `options` are those of all commands, and
    `variables` are put into their environment."""

    shape: Shape
    rate: float
    length_ms: int
    seed: int
    dispatchers: int
    workers: int
    plan: tuple[Fault, ...]
    command: str
    dispatch: tuple[str, ...]
    options: tuple[str, ...]
    variables: dict[str, str] = {}


async def run_load(
    settings: Settings, order: Order, folder: Path, stop: asyncio.Event, tell: Callable[[str, int], None]
) -> Report:
    """Run it; after `stop`, report on the part that ran. Logs and records go to the folder. `RunFailed`."""
    plan = arrivals(order.shape, order.rate, order.length_ms, order.seed)
    async with (
        opened(settings) as installation,
        crew(folder, order.dispatch, order.options, order.variables) as processes,
    ):
        await installation.declare([QUEUE])
        await _unless(stop, _serving(installation, processes, order))
        run = _Run(installation, processes, order, plan, await _ends(installation))
        await run.load(stop, tell)
        complete = not stop.is_set()
        await processes.end()
        return await run.report(complete=complete)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do it; `RunFailed` if `stop` comes before it is done."""
    doing, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise RunFailed("interrupted before the load began")
        await doing
    finally:
        for task in (doing, stopping):
            task.cancel()
        await asyncio.wait({doing, stopping})


async def _serving(installation: Installation, processes: Crew, order: Order) -> None:
    """Begin all processes, and return when each shard has an owner and a task has gone the whole way in it."""
    await processes.begin(order.dispatchers, order.workers)
    try:
        async with asyncio.timeout(SERVE_S):
            while not await _all_owned(installation, order.dispatchers):  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(LOOK_S)
            wanted = await _warm_up(installation)
            while not wanted <= {start.key for start in processes.starts}:
                processes.look()
                if processes.remarks:
                    raise RunFailed(processes.remarks[0])
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise RunFailed(f"the first tasks were not run within {SERVE_S:.0f} s") from None


async def _all_owned(installation: Installation, dispatchers: int) -> bool:
    with suppress(CoordinatorError):
        owners = await installation.coordinator.owners()
        return len(owners) == SHARDS and len(set(owners.values())) >= dispatchers
    return False


async def _warm_up(installation: Installation) -> set[str]:
    """Submit one task for each shard, due at once: their keys."""
    run, ids = f"{now_ms():x}", dict[int, str]()
    number = 0
    while len(ids) < SHARDS:
        number += 1
        ids.setdefault(shard_of(f"{DEFAULT_TENANT}/{run}-warm-{number}"), f"{run}-warm-{number}")
    submissions = [Submission(id=task_id, queue=QUEUE, delay_ms=0) for task_id in ids.values()]
    answers = [answer async for answer in installation.client().submit_many(submissions)]
    return {answer.key for answer in answers if isinstance(answer, Accepted)}


async def _ends(installation: Installation) -> list[int]:
    """Where each partition of the due topic ends."""
    bounds = await installation.broker.bounds(installation.topics.due(QUEUE), range(SHARDS))
    return [each.end for each in bounds]


class _Run:
    """The load itself, and what is noted of it. `begins` is where the due topic ended before."""

    def __init__(
        self,
        installation: Installation,
        processes: Crew,
        order: Order,
        plan: Sequence[Arrival],
        begins: Sequence[int],
    ) -> None:
        self._installation = installation
        self._processes = processes
        self._order = order
        self._plan = plan
        self._begins = begins
        self._start_ms = now_ms() + HEAD_MS
        self._ended_ms = self._start_ms
        self._usage = Usage(STEP_MS)
        self._owners: list[tuple[int, dict[int, str]]] = []
        composer = Composer(installation.topics, installation.limits)
        self._generator = Generator(installation.broker, composer, f"{self._start_ms:x}", self._start_ms, now_ms)

    async def load(self, stop: asyncio.Event, tell: Callable[[str, int], None]) -> None:
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look_each_step())
            striking = group.create_task(self._processes.carry_out(self._order.plan, self._start_ms))
            sending = group.create_task(self._generator.run(self._plan, stop))
            await self._until_done(stop, {striking, sending}, tell)
            self._ended_ms = now_ms()
            for task in (looking, striking):
                task.cancel()

    async def _until_done(
        self, stop: asyncio.Event, under_way: set[asyncio.Task[None]], tell: Callable[[str, int], None]
    ) -> None:
        """Until all is sent and struck and each accepted task has begun; or long enough after, or `stop`."""
        until_ms: int | None = None
        seen, done = 0, set[str]()
        while not stop.is_set():
            await asyncio.sleep(LOOK_S)
            self._processes.look()
            news, failures = self._processes.starts[seen:], self._generator.failures
            done.update(start.key for start in news if start.attempt > failures.get(start.key, 0))
            seen += len(news)
            tell("submitted", len(self._generator.sent))
            tell("done", len(done) - SHARDS)
            if not all(task.done() for task in under_way):
                continue
            if until_ms is None:
                until_ms = max(now_ms(), self._start_ms + self._plan[-1].due_ms) + self._grace_ms
            if now_ms() > until_ms or self._generator.accepted_keys <= done:
                return

    @property
    def _grace_ms(self) -> int:
        settings = self._installation.settings
        return GRACE_MS + settings.worker.hold_ms + settings.broker.session_ms + settings.dispatcher.session_ms

    async def _look_each_step(self) -> None:
        step = 0
        while True:
            await asyncio.sleep(max(0, self._start_ms + step * STEP_MS - now_ms()) / 1_000)
            step = max(step, (now_ms() - self._start_ms) // STEP_MS)  # one that was missed is left out
            looks = {child.name: used(child.process.pid) for child in self._processes.children if child.alive}
            self._usage.look(step, {**looks, GENERATOR: used(os.getpid())})
            with suppress(CoordinatorError):  # then nobody knows, which is not that nobody owns
                self._owners.append((now_ms(), dict(await self._installation.coordinator.owners())))
            step += 1

    async def report(self, *, complete: bool) -> Report:
        order, sent, processes = self._order, self._generator.sent, self._processes
        tenures = tenures_of(self._owners, self._ended_ms)
        topic = self._installation.topics.due(QUEUE)
        evidence = Evidence(
            self._start_ms,
            self._ended_ms,
            sent,
            await deliveries(self._installation.broker, topic, self._begins),
            processes.starts,
            processes.strikes,
            tenures,
            judged_ms=None if complete else self._ended_ms - self._grace_ms,
        )
        counts = evidence.counts
        cpu_s = sum(self._usage.cpu_s(child.name) for child in processes.children)
        return Report(
            kind="run",
            profile=order.shape,
            seed=order.seed,
            command=order.command,
            version=version("minutewheel"),
            started_ms=self._start_ms,
            duration_ms=self._ended_ms - self._start_ms,
            complete=complete,
            counts=counts,
            lateness=evidence.lateness,
            series=evidence.series,
            heat=evidence.heat,
            bands=tuple(sorted(processes.bands, key=lambda band: band.from_ms)),
            tenures=tenures,
            processes=self._usage.processes(),
            core_s_per_million=round(cpu_s / counts.done * 1_000_000, 1) if cpu_s and counts.done else None,
            environment=environment(self._installation.settings, order),
            remarks=(*self._remarks(), *evidence.remarks, *processes.remarks),
        )

    def _remarks(self) -> tuple[str, ...]:
        generator = self._generator
        told = [
            f"each task was planned to arrive {AHEAD_MS[0]:,} to {AHEAD_MS[1]:,} ms before its due time",
            f"the generator sent at most {generator.behind_ms:,} ms after the plan",
        ]
        if generator.not_sent:
            told.append(f"{generator.not_sent:,} of the rejected were not sent: too many were on their way already")
        if not self._usage.processes():
            told.append("this system does not say what its processes use")
        return tuple(told)


async def deliveries(broker: Broker, topic: str, begins: Sequence[int]) -> list[Delivery]:
    """All that was published for the queue since, in the order of its partitions. `RunFailed` if it can't be read."""
    try:
        async with asyncio.timeout(READ_S):
            return [one async for one in _read(broker, topic, begins)]
    except TimeoutError:
        raise RunFailed(f"the due topic could not be read back within {READ_S:.0f} s") from None


async def _read(broker: Broker, topic: str, begins: Sequence[int]) -> AsyncIterator[Delivery]:
    clock = SystemClock()
    ends = await until_done(clock, partial(broker.bounds, topic, range(SHARDS)))
    for partition, bounds in enumerate(ends):
        offset = max(begins[partition], bounds.start)
        while offset < bounds.end:
            fetch = partial(broker.fetch, topic, partition, offset, FETCH_RECORDS, FETCH_WAIT_MS)
            fetched = await until_done(clock, fetch)
            for record in fetched.records:
                with suppress(NotDue):
                    due = parse_due(record)
                    yield Delivery(due.key, due.shard, due.filing, record.time_ms)
            offset = fetched.next_offset


def environment(settings: Settings, order: Order) -> dict[str, str]:
    """What the figures depend on beside the load."""
    found = {
        "mode": settings.mode,
        "dispatchers": str(order.dispatchers),
        "workers": str(order.workers),
        "rate": f"{order.rate:g} tasks/s for {order.length_ms / 1_000:g} s",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": str(os.cpu_count()),
    }
    with suppress(OSError):
        found["load average"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found
