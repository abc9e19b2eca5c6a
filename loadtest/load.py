"""How long does one large bucket take from the store into the wheel?

A minute of one shard is filed by one dispatcher. The next one waits for the time at which it has to be loaded, as on
any day, and is watched while it reads page after page.
"""

import asyncio
import secrets
from typing import TYPE_CHECKING

from msgspec import Struct

from ..settings import Settings
from ..store.task import MINUTE_MS, minute_of
from ..wiring import Installation, opened
from .figures import Figure, at_most
from .serving import Meter, Tell, dispatching, file, keys_of, until
from .stage import LoadTestFailed, staged, with_lead

if TYPE_CHECKING:
    from ..dispatcher.memory import Memory

SHARD = 0
LOAD_S = 1.5
HEAD_MS = 30_000
FILING_US = 250
CALM_MS = 6_000
"""From the start of the second dispatcher to the time of loading: by then it has all its shards."""
PATIENCE_S = 120.0
LOOK_S = 0.001


class LoadReport(Struct, frozen=True, kw_only=True):
    """From the step in which the reading began until all rows were in the wheel."""

    rows: int
    loaded: int
    seconds: Figure
    rows_per_s: float
    cpu_us_row: float


async def run_load(settings: Settings, rows: int, tell: Tell) -> LoadReport:
    """Measure, on a fleet of this test's own."""
    ids = list(keys_of(secrets.token_hex(3), rows, [SHARD]))
    async with staged(settings) as own:
        async with opened(own) as installation:
            now_ms = installation.clock.now_ms()
        minute = minute_of(now_ms + HEAD_MS + rows * FILING_US // 1_000) + 1
        due_ms = [minute * MINUTE_MS + at * MINUTE_MS // rows for at in range(rows)]
        await file(with_lead(own, 1_000), ids, due_ms, PATIENCE_S, tell)
        async with opened(own) as installation:
            start_ms = installation.clock.now_ms() + CALM_MS
        lead_ms = minute * MINUTE_MS - start_ms
        if lead_ms < 1:
            raise LoadTestFailed("filing took longer than until the minute began")
        async with opened(with_lead(own, lead_ms)) as installation:
            return await _watch(installation, minute, rows, start_ms, tell)


async def _watch(installation: Installation, minute: int, rows: int, start_ms: int, tell: Tell) -> LoadReport:
    async with dispatching(installation) as dispatcher:
        memory = dispatcher.shards[SHARD].context.memory
        if memory.reach >= minute:
            raise LoadTestFailed("the dispatcher took longer to begin than until the minute was loaded")
        await asyncio.sleep((start_ms - installation.clock.now_ms() - 100) / 1_000)
        await until(lambda: memory.reach >= minute, PATIENCE_S, "begin to load", look_s=LOOK_S)
        meter = Meter()
        await until(lambda: memory.loaded(minute), PATIENCE_S, "load the minute", look_s=LOOK_S)
        seconds, cpu_s, loaded = meter.seconds(), meter.cpu_s(), _loaded(memory, minute, rows)
        tell("loaded", loaded)
    return LoadReport(
        rows=rows,
        loaded=loaded,
        seconds=at_most(seconds, LOAD_S),
        rows_per_s=round(rows / seconds, 1),
        cpu_us_row=round(cpu_s / rows * 1_000_000, 2),
    )


def _loaded(memory: "Memory", minute: int, rows: int) -> int:
    if memory.wheel.count(minute) != rows:
        raise LoadTestFailed(f"of {rows} rows, {memory.wheel.count(minute)} are in the wheel")
    return rows
