"""A fleet under one continuous load, in which each of its parts fails in turn: nothing is lost, early or done twice.

Three dispatchers and two workers are real processes; Cassandra, Kafka and ZooKeeper are this test's own, so that their
faults touch nobody else. What is known of the outcome comes from three records that ask no part of the product: what
the broker acknowledged to the submitter, what stands in the due topic, and what the handlers wrote.

What each fault costs is printed; how late tasks may be is asserted only if FLEET_FAULTS_TIMES=1 says that the machine
has room for all of it.

In the environment: FLEET_FAULTS names some of the faults (`kill,term`; default: all), FLEET_FAULTS_RATE the
tasks a second, FLEET_FAULTS_JSON a file for the figures, FLEET_FAULTS_SERVICES a folder whose services are
used and left running.
"""

import asyncio
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from minutewheel.console.shards import standings_of
from minutewheel.deploy.services import down, server, up
from minutewheel.settings import load
from minutewheel.wiring import Installation, opened, set_up
from msgspec import Struct

from .fleet_load import QUEUE, Delivery, FleetProcesses, Load, deliveries, logged, now_ms, rows

pytestmark = [pytest.mark.acceptance, pytest.mark.real, pytest.mark.timeout(900)]

SESSION_MS = 10_000
HOLD_MS = 9_000
RATE = int(os.environ.get("FLEET_FAULTS_RATE", "60"))
JUDGE_TIMES = os.environ.get("FLEET_FAULTS_TIMES") == "1"
PEAK_S = 10
"""A minute's peak, in seconds of the steady load."""
DOWN_S = 20
WARM_S = 60 if JUDGE_TIMES else 15
"""Cold servers take longer for everything."""
QUIET_S = 120
STILL_UNDER_WAY_MS = 500
"""What was handed to the broker before a kill may be appended for so long after it."""

CONFIG = """\
mode = "real"
queues = ["effects"]
[log]
format = "json"
[topics]
prefix = "{name}"
[cassandra]
hosts = "{cassandra}"
security = "plaintext"
keyspace = "{name}"
replication = 1
[kafka]
bootstrap = "{kafka}"
security = "plaintext"
replication = 1
[zookeeper]
hosts = "{zookeeper}"
security = "plaintext"
chroot = "/{name}"
[worker]
hold_ms = {hold_ms}
renew_ms = {renew_ms}
[dispatcher]
session_ms = {session_ms}
"""


class Ground(Struct):
    """What a fault acts on."""

    services: Path
    fleet: FleetProcesses
    installation: Installation
    dispatchers: list[asyncio.subprocess.Process] = []
    workers: list[asyncio.subprocess.Process] = []

    async def owned(self, process: asyncio.subprocess.Process) -> set[int]:
        """The shards that it owns now."""
        member = self.fleet.members[process.pid]
        return {one.shard for one in await standings_of(self.installation) if one.owner == member}

    async def all_owned(self) -> None:
        """Until each shard has an owner, and each dispatcher some shards."""
        async with asyncio.timeout(60):
            while True:
                owners = {one.owner for one in await standings_of(self.installation)}
                if "" not in owners and len(owners) == len(self.dispatchers):
                    return
                await asyncio.sleep(0.5)


class Span(Struct):
    """One fault: from its begin to the begin of the next."""

    name: str
    start_ms: int
    end_ms: int = 0
    back_ms: int = 0
    """When what had failed was there again, or the process was gone."""
    shards: set[int] = set()


class Figures(Struct):
    """What a fault came to. Times in ms; lateness from the due time or the acceptance, whichever is later."""

    fault: str
    due: int
    lost: int
    early: int
    effects_missing: int
    effects_twice: int
    extra_starts: int
    duplicates: int
    latest_ms: int
    median_ms: int


async def kill(ground: Ground, span: Span) -> None:
    victim = ground.dispatchers.pop(0)
    span.shards = await ground.owned(victim)
    span.start_ms = now_ms()
    victim.kill()
    await victim.wait()
    span.back_ms = now_ms()
    await asyncio.sleep(SESSION_MS / 1_000 + 8)
    ground.dispatchers.append(await ground.fleet.dispatcher())


async def freeze(ground: Ground, span: Span) -> None:
    victim = ground.dispatchers[0]
    victim.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(3 * SESSION_MS / 1_000)
    finally:
        victim.send_signal(signal.SIGCONT)
    span.back_ms = now_ms()


async def term(ground: Ground, span: Span) -> None:
    victim = ground.dispatchers.pop(0)
    span.shards = await ground.owned(victim)
    span.start_ms = now_ms()
    victim.terminate()
    assert await asyncio.wait_for(victim.wait(), 30) == 0
    span.back_ms = now_ms()
    await asyncio.sleep(8)
    span.end_ms = now_ms()
    ground.dispatchers.append(await ground.fleet.dispatcher())


async def block(ground: Ground, span: Span) -> None:
    ground.dispatchers[0].send_signal(signal.SIGUSR1)
    await asyncio.sleep(15)
    span.back_ms = now_ms()


async def kill_worker(ground: Ground, span: Span) -> None:
    victim = ground.workers.pop(0)
    victim.kill()
    await victim.wait()
    span.back_ms = now_ms()
    await asyncio.sleep(2)
    ground.workers.append(await ground.fleet.worker())


def outage(name: str, *, wiped: bool = False) -> Callable[[Ground, Span], Awaitable[None]]:
    async def fault(ground: Ground, span: Span) -> None:
        one = server(name, ground.services)
        await asyncio.to_thread(one.kill)
        if wiped:
            await asyncio.to_thread(one.wipe)
        else:
            await asyncio.sleep(max(0, DOWN_S - (now_ms() - span.start_ms) / 1_000))
        await asyncio.to_thread(one.start)
        span.back_ms = now_ms()

    return fault


async def hang_cassandra(ground: Ground, span: Span) -> None:
    """It stands still with its connections open: requests run out, and nobody knows whether they were done."""
    one = server("cassandra", ground.services)
    await asyncio.to_thread(one.stop)
    try:
        await asyncio.sleep(DOWN_S)
    finally:
        await asyncio.to_thread(one.cont)
    span.back_ms = now_ms()


FAULTS: dict[str, tuple[Callable[[Ground, Span], Awaitable[None]], float]] = {
    "kill": (kill, 8),
    "freeze": (freeze, 20),
    "term": (term, 8),
    "block": (block, 20),
    "worker": (kill_worker, 15),
    "zookeeper": (outage("zookeeper"), 20),
    "kafka": (outage("kafka"), 20),
    "cassandra": (hang_cassandra, 25),
    "wipe": (outage("zookeeper", wiped=True), 25),
}
"""Each fault, and the seconds after it until the next."""
CHOSEN = [name for name in os.environ.get("FLEET_FAULTS", ",".join(FAULTS)).split(",") if name]


@pytest.fixture(scope="module")
def own_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    given = os.environ.get("FLEET_FAULTS_SERVICES")
    folder = Path(given) if given else tmp_path_factory.mktemp("services")
    up(["cassandra", "kafka", "zookeeper"], folder)
    yield folder
    if not given:
        down(folder)


@asynccontextmanager
async def ground_of(services: Path, folder: Path) -> AsyncIterator[Ground]:
    addresses = up(["cassandra", "kafka", "zookeeper"], services)
    config = folder / "minutewheel.toml"
    where = {"cassandra": addresses.cassandra, "kafka": addresses.kafka, "zookeeper": addresses.zookeeper}
    times = {"hold_ms": HOLD_MS, "renew_ms": HOLD_MS // 3, "session_ms": SESSION_MS}
    config.write_text(CONFIG.format(name=f"faults_{secrets.token_hex(3)}", **where, **times))
    settings = load({}, config).settings
    await set_up(settings)
    fleet = FleetProcesses(folder, config)
    async with opened(settings) as installation:
        await installation.declare([QUEUE])
        ground = Ground(services, fleet, installation)
        try:
            ground.dispatchers = list(await asyncio.gather(*(fleet.dispatcher() for _ in range(3))))
            ground.workers = [await fleet.worker() for _ in range(2)]
            await ground.all_owned()
            yield ground
        finally:
            await fleet.close()


async def faults_in_turn(ground: Ground) -> list[Span]:
    spans = [Span("none", now_ms())]
    await asyncio.sleep(WARM_S)
    for name in CHOSEN:
        fault, rest_s = FAULTS[name]
        span = Span(name, now_ms())
        spans[-1].end_ms = spans[-1].end_ms or span.start_ms
        spans.append(span)
        await fault(ground, span)
        await asyncio.sleep(rest_s)
        await ground.all_owned()  # so that no fault meets what the one before has left
    spans[-1].end_ms = spans[-1].end_ms or now_ms()
    return spans


async def all_done(ground: Ground, wanted: int) -> None:
    """Until the effects are all there, or none has come for long enough to call the rest lost."""
    seen, until = -1, time.monotonic() + QUIET_S
    while seen < wanted and time.monotonic() < until:
        ((count,),) = rows(ground.fleet.effects, "SELECT count(*) FROM effect")
        if count != seen:
            seen, until = int(count), time.monotonic() + QUIET_S / 4
        await asyncio.sleep(0.5)


def figures_of(span: Span, load: Load, published: list[Delivery], fleet: FleetProcesses) -> Figures:
    """Of the tasks that fell due within the span."""
    tasks = {key: one for key, one in load.accepted.items() if span.start_ms <= one.due_ms < span.end_ms}
    first: dict[str, int] = {}
    for one in published:
        if one.key in tasks:
            first[one.key] = min(one.at_ms, first.get(one.key, one.at_ms))
    times = Counter(one.filing for one in published if one.key in tasks)
    late = sorted(at_ms - max(tasks[key]) for key, at_ms in first.items())
    effects = Counter(str(key) for (key,) in rows(fleet.effects, "SELECT key FROM effect") if key in tasks)
    starts = [(key, int(at_ms)) for key, at_ms in rows(fleet.effects, "SELECT key, at_ms FROM start") if key in tasks]
    return Figures(
        span.name,
        len(tasks),
        lost=len(tasks.keys() - first.keys()),
        early=sum(at_ms < tasks[key].due_ms for key, at_ms in (*first.items(), *starts)),  # type: ignore[index]
        effects_missing=len(tasks.keys() - effects.keys()),
        effects_twice=sum(count - 1 for count in effects.values()),
        extra_starts=len(starts) - len({key for key, _ in starts}),
        duplicates=sum(count - 1 for count in times.values()),
        latest_ms=late[-1] if late else 0,
        median_ms=late[len(late) // 2] if late else 0,
    )


def resumed_ms(span: Span, published: list[Delivery]) -> dict[int, int]:
    """Of each shard of the victim: how long after the fault the first task was published that had waited for it.

    Only tasks count that were overdue when a session timeout was over: a shard that has none of them shows nothing.
    """
    after, until = span.back_ms + STILL_UNDER_WAY_MS, span.start_ms + SESSION_MS
    found: dict[int, int] = {}
    for one in published:
        shard = one.filing[0]
        if shard in span.shards and one.at_ms > after and one.due_ms < until:
            found[shard] = min(one.at_ms - span.start_ms, found.get(shard, one.at_ms))
    return found


def stale_writes(fleet: FleetProcesses) -> dict[str, int]:
    """How often each reason for leaving a shard, other than handing it over, was logged."""
    lines = logged(fleet.logs.values())
    return dict(Counter(str(line["reason"]) for line in lines if line.get("event") == "shard left" and line["reason"]))


def told(figures: list[Figures], more: dict[str, object]) -> None:
    names = Figures.__struct_fields__
    print("\n" + "  ".join(f"{name:>15}" for name in names))
    for one in figures:
        print("  ".join(f"{getattr(one, name):>15}" for name in names))
    for name, value in more.items():
        print(f"{name}: {value}")
    if out := os.environ.get("FLEET_FAULTS_JSON"):
        Path(out).write_bytes(msgspec.json.encode({"faults": figures, **more}))


def judge_times(figures: dict[str, Figures], spans: dict[str, Span], resumed: dict[str, dict[int, int]]) -> None:
    """How soon others go on. Where two cores carry three servers and seven processes, this says more of the cores."""
    if not JUDGE_TIMES:
        print("times are not judged: FLEET_FAULTS_TIMES=1 does, on a machine with room for all of it")
        return
    if "kill" in spans:
        assert max(resumed["kill"].values()) <= SESSION_MS + 2_000
    if "term" in spans:
        assert figures["term"].duplicates == 0
        assert figures["term"].latest_ms < 1_000


async def test_each_part_fails_in_turn_and_nothing_is_lost_early_or_done_twice(
    own_services: Path, tmp_path: Path
) -> None:
    seed = secrets.randbits(32)
    async with ground_of(own_services, tmp_path) as ground:
        load = Load(ground.installation.client(), RATE, RATE * PEAK_S, seed)
        stop = asyncio.Event()
        submitting = asyncio.create_task(load.run(stop))
        spans = await faults_in_turn(ground)
        stop.set()
        async with asyncio.timeout(QUIET_S):
            await submitting
        await all_done(ground, len(load.accepted))
        for process in (*ground.dispatchers, *ground.workers):
            with suppress(ProcessLookupError):
                process.terminate()
        ends = [await asyncio.wait_for(one.wait(), 60) for one in (*ground.dispatchers, *ground.workers)]
        bootstrap = up(["kafka"], own_services).kafka
        topic = ground.installation.topics.due(QUEUE)
        published = await asyncio.to_thread(deliveries, bootstrap, topic)
    whole = Span("all", 0, 1 << 60)
    figures = [figures_of(span, load, published, ground.fleet) for span in (*spans, whole)]
    resumed = {span.name: resumed_ms(span, published) for span in spans if span.shards}
    more: dict[str, object] = {
        "seed": seed,
        "sent again": load.refused,
        "load average": os.getloadavg(),
        "shards left because": stale_writes(ground.fleet),
        "resumed after, ms, by shard": {name: sorted(of.values()) for name, of in resumed.items()},
    }
    told(figures, more)
    assert ends == [0] * len(ends), "each ends cleanly when it is told to"
    for one in figures:
        harm = (one.lost, one.early, one.effects_missing, one.effects_twice)
        assert harm == (0, 0, 0, 0), one
    judge_times({one.fault: one for one in figures}, {span.name: span for span in spans}, resumed)
