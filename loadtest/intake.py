"""What does it cost to file submissions?

They stand in the log before a dispatcher takes the shards; then it looks their keys up, writes their rows and records
its progress, in real services. Two shapes: due times within a few minutes, where a batch goes into few partitions, and
every task in a minute of its own, where each needs a statement of its own.
"""

import secrets
from collections.abc import Callable, Sequence

from msgspec import Struct

from ..settings import Settings
from ..store.task import MINUTE_MS, SHARDS
from ..wiring import Installation, opened
from .figures import Figure, at_most
from .serving import Meter, Tell, applied, dispatching, keys_of, rows_of, submit, until
from .stage import LoadTestFailed, staged, with_lead

FEW_MINUTES = 10
FEW_US, OWN_US = 50, 350
OWN_SHARE = 5
"""Of the tasks of the first shape, the second takes this part: each costs so much more."""
FAR_MS = 24 * 60 * MINUTE_MS
PATIENCE_S_A_TASK = 0.005
PATIENCE_S = 60.0


class Shape(Struct, frozen=True, kw_only=True):
    """What one shape cost. `filed` are the task rows found in the store afterwards."""

    tasks: int
    filed: int
    seconds: float
    tasks_per_s: float
    cpu_us_task: Figure


class IntakeReport(Struct, frozen=True, kw_only=True):
    """Both shapes."""

    shards: int
    few_minutes: Shape
    own_minute: Shape


async def run_intake(settings: Settings, tasks: int, shards: int, tell: Tell) -> IntakeReport:
    """Measure both shapes, on a fleet of this test's own."""
    async with staged(settings) as own:
        lone = max(1, tasks // OWN_SHARE)
        few = await _shape(own, tasks, shards, lambda at: at % FEW_MINUTES, FEW_US, tell)
        each = await _shape(own, lone, shards, lambda at: at, OWN_US, tell)
    return IntakeReport(shards=shards, few_minutes=few, own_minute=each)


async def _shape(
    settings: Settings, tasks: int, shards: int, minute_at: Callable[[int], int], budget_us: int, tell: Tell
) -> Shape:
    # The last shards: a dispatcher takes them in their order, so little is filed before it has them all.
    ids = list(keys_of(secrets.token_hex(3), tasks, range(SHARDS - shards, SHARDS)))
    async with opened(with_lead(settings, 1_000)) as installation:
        first_ms = installation.clock.now_ms() + FAR_MS
        await submit(installation, ids, [first_ms + minute_at(at) * MINUTE_MS for at in range(tasks)], tell)
        seconds, cpu_s, counted = await _file(installation, tasks, SHARDS - shards, tell)
        filed = await _filed(installation, ids)
    return Shape(
        tasks=tasks,
        filed=filed,
        seconds=round(seconds, 3),
        tasks_per_s=round(counted / seconds, 1),
        cpu_us_task=at_most(cpu_s / counted * 1_000_000, budget_us),
    )


async def _file(installation: Installation, tasks: int, others: int, tell: Tell) -> tuple[float, float, int]:
    """Seconds, CPU seconds and tasks, from when all the other shards are claimed until all is applied."""
    async with dispatching(installation, others) as dispatcher:
        meter, before = Meter(), applied(dispatcher)
        patience_s = PATIENCE_S + tasks * PATIENCE_S_A_TASK
        await until(
            lambda: applied(dispatcher) >= tasks,
            patience_s,
            "file the tasks",
            look=lambda: tell("filed", applied(dispatcher)),
        )
        tell("filed", tasks)
        if before == tasks:
            raise LoadTestFailed("all was filed while the shards were taken: measure more tasks")
        return meter.seconds(), meter.cpu_s(), tasks - before


async def _filed(installation: Installation, ids: Sequence[str]) -> int:
    """How many task rows there are; `LoadTestFailed` if any is missing or not waiting."""
    rows = await rows_of(installation, ids)
    if {row.state for row in rows} != {"scheduled"} or len(rows) != len(ids):
        raise LoadTestFailed(f"of {len(ids)} tasks, {len(rows)} are in the store")
    return len(rows)
