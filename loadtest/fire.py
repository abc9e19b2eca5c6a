"""How fast and how punctually does a loaded wheel come out at Kafka?

The tasks are filed by one dispatcher, loaded by the next, and then fall due: all at once (how fast), or spread evenly
over some seconds (how punctual). Each is published with all its headers and acknowledged, and its mark is recorded.
Afterwards the due topic is read: none may be missing there, and what stands there twice is counted.
"""

import asyncio
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..settings import Settings
from ..store.task import MINUTE_MS, minute_of
from ..wiring import Installation, opened
from .figures import Figure, Lateness, at_least, at_most, lateness
from .serving import Meter, Tell, claimed, dispatching, file, fired, keys_of, published, until, waiting
from .stage import LoadTestFailed, staged, with_lead
from .watched import WatchedBroker

if TYPE_CHECKING:
    from ..dispatcher.dispatcher import Dispatcher

FLAT_PER_S = 60_000
PACE_PER_S = 6_250
P50_MS, P99_MS = 15, 60
WRITES_PER_1000 = 1
HEAD_MS = 30_000
FILING_US = 250
"""What filing and loading may take a task before the first is due; `HEAD_MS` on top."""
LOADED_BY_MS = 1_000
PATIENCE_S = 120.0


class Flat(Struct, frozen=True, kw_only=True):
    """All due at once. `seconds` last until the last is acknowledged, `recorded_s` until its mark is recorded too."""

    tasks: int
    published: int
    repeated: int
    seconds: float
    recorded_s: float
    tasks_per_s: Figure
    cpu_us_task: float
    store_writes_per_1000: Figure


class Paced(Struct, frozen=True, kw_only=True):
    """So many due in each second."""

    tasks: int
    published: int
    repeated: int
    per_s: int
    lateness: Lateness
    cpu_us_task: float
    store_writes_per_1000: Figure


class FireReport(Struct, frozen=True, kw_only=True):
    """Both runs."""

    shards: int
    flat: Flat
    paced: Paced


class Firing(Struct, frozen=True, kw_only=True):
    """What was measured while they fired."""

    published: int
    repeated: int
    seconds: float
    recorded_s: float
    cpu_s: float
    writes: int
    late_ms: Sequence[int]


async def run_fire(settings: Settings, tasks: int, paced_s: int, shards: int, tell: Tell) -> FireReport:
    """Measure both, each on a fleet of its own."""
    flat = await _fire(settings, [0] * tasks, shards, tell)
    spread = [at * 1_000 // PACE_PER_S for at in range(PACE_PER_S * paced_s)]
    paced = await _fire(settings, spread, shards, tell)
    return FireReport(
        shards=shards,
        flat=Flat(
            tasks=tasks,
            published=flat.published,
            repeated=flat.repeated,
            seconds=round(flat.seconds, 3),
            recorded_s=round(flat.recorded_s, 3),
            tasks_per_s=at_least(tasks / flat.seconds, FLAT_PER_S),
            cpu_us_task=round(flat.cpu_s / tasks * 1_000_000, 2),
            store_writes_per_1000=at_most(flat.writes / tasks * 1_000, WRITES_PER_1000),
        ),
        paced=Paced(
            tasks=len(spread),
            published=paced.published,
            repeated=paced.repeated,
            per_s=PACE_PER_S,
            lateness=lateness(paced.late_ms, P50_MS, P99_MS),
            cpu_us_task=round(paced.cpu_s / len(spread) * 1_000_000, 2),
            store_writes_per_1000=at_most(paced.writes / len(spread) * 1_000, WRITES_PER_1000),
        ),
    )


async def _fire(settings: Settings, offsets_ms: Sequence[int], shards: int, tell: Tell) -> Firing:
    """File tasks that are due so long after the first, load them, and see them go."""
    ids = list(keys_of(secrets.token_hex(3), len(offsets_ms), range(shards)))
    async with staged(settings) as own:
        async with opened(own) as installation:
            first_ms = installation.clock.now_ms() + HEAD_MS + len(ids) * FILING_US // 1_000
        due_ms = [first_ms + offset_ms for offset_ms in offsets_ms]
        await file(with_lead(own, 1_000), ids, due_ms, PATIENCE_S, tell)
        async with opened(with_lead(own, HEAD_MS + due_ms[-1] - first_ms + 10 * MINUTE_MS)) as installation:
            firing = await _watch(installation, due_ms, tell)
            records = await published(installation)
            if set(records) != set(ids):
                raise LoadTestFailed(f"of {len(ids)} tasks, {len(set(records))} were published")
            return replace(firing, published=len(ids), repeated=len(records) - len(ids))


async def _watch(installation: Installation, due_ms: Sequence[int], tell: Tell) -> Firing:
    paced = due_ms[-1] > due_ms[0]
    watched = WatchedBroker(installation.broker, installation.topics, installation.clock.now_ms, each=paced)
    installation.broker = watched
    minutes = range(minute_of(due_ms[0]), minute_of(due_ms[-1]) + 1)
    async with dispatching(installation) as dispatcher:
        await until(
            lambda: waiting(dispatcher, minutes) == len(due_ms),
            PATIENCE_S,
            "load the tasks",
            look=lambda: tell("loaded", waiting(dispatcher, minutes)),
        )
        tell("loaded", len(due_ms))
        left_s = (due_ms[0] - LOADED_BY_MS - installation.clock.now_ms()) / 1_000
        if left_s < 0:
            raise LoadTestFailed("filing and loading took longer than until the first task was due")
        await asyncio.sleep(left_s)
        return await _measure(installation, dispatcher, watched, due_ms, tell)


async def _measure(
    installation: Installation, dispatcher: "Dispatcher", watched: WatchedBroker, due_ms: Sequence[int], tell: Tell
) -> Firing:
    """From shortly before the first is due until the last mark is recorded."""
    meter, before = Meter(), _checkpoints(dispatcher)
    patience_s = PATIENCE_S + (due_ms[-1] - due_ms[0]) / 1_000
    await until(
        lambda: fired(dispatcher) == len(due_ms) and not any(_unrecorded(dispatcher)),
        patience_s,
        "fire the tasks",
        look=lambda: tell("fired", fired(dispatcher)),
    )
    tell("fired", len(due_ms))
    now_ms = installation.clock.now_ms()
    return Firing(
        published=0,
        repeated=0,
        seconds=(watched.last_ms - due_ms[0]) / 1_000,
        recorded_s=(now_ms - due_ms[0]) / 1_000,
        cpu_s=meter.cpu_s(),
        writes=_checkpoints(dispatcher) - before,
        late_ms=watched.late_ms,
    )


def _checkpoints(dispatcher: "Dispatcher") -> int:
    """The only writes of the firing path."""
    return sum(shard.context.counts.checkpoints for shard in claimed(dispatcher))


def _unrecorded(dispatcher: "Dispatcher") -> list[int]:
    return [shard.context.journal.unrecorded for shard in claimed(dispatcher)]
