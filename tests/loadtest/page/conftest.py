"""Reports to draw: one with all that there can be in it, hostile names included, and one as long as a day."""

import math
import random
from collections.abc import Callable

import pytest
from minutewheel.loadtest.report import (
    Band,
    Counts,
    Heat,
    Lateness,
    Process,
    Report,
    Series,
    Tenure,
)

STARTED_MS = 1_790_000_040_000
HOSTILE = "<script>alert(1)</script>\u202e\x07'\"&"
MEMBERS = ("dispatcher-1", "dispatcher-2", HOSTILE)


def made(minutes: int, shards: int = 64) -> Report:
    chance, steps, end_ms = random.Random(1), minutes * 60, minutes * 60_000

    def series(name: str, unit: str, value: Callable[[float], float | None]) -> Series:
        return Series(name=name, unit=unit, step_ms=1_000, values=tuple(value(at / steps) for at in range(steps)))

    def spike(at: float) -> float:
        return 900 * math.exp(-(((at - 0.42) / 0.012) ** 2))

    def line(height: float) -> tuple[float | None, ...]:
        return tuple(None if 0.42 < at / steps < 0.45 else height + chance.random() for at in range(steps))

    def tenures(shard: int) -> list[Tenure]:
        first, second = MEMBERS[shard % 3], MEMBERS[(shard + 1) % 3]
        lost_ms = end_ms * 42 // 100
        taken_ms = lost_ms + chance.randrange(3_000, 9_000)
        return [
            Tenure(shard=shard, member=first, from_ms=0, to_ms=lost_ms),
            Tenure(shard=shard, member=second, from_ms=taken_ms, to_ms=end_ms),
        ]

    rows = tuple(tuple(chance.randrange(500) for _ in range(shards)) for _ in range(minutes))
    faults = (("kill -9", 42, 44), ("pause 5 s", 70, 71), (HOSTILE, 72, 75), ("clock back 2 s", 96, 99))
    return Report(
        kind="on the real services",
        profile="day",
        seed=7,
        command=f"minutewheel loadtest run --tasks 1e6 {HOSTILE}",
        version="0.1.0",
        started_ms=STARTED_MS,
        duration_ms=end_ms,
        complete=True,
        counts=Counts(
            submitted=1_234_567, accepted=1_234_001, rejected=566, fired=1_233_999, done=1_233_990, recovered=41_233
        ),
        lateness=Lateness(percentiles_ms=((50, 12), (90, 31), (99, 120), (99.9, 830), (99.99, 4_100), (100, 9_321))),
        series=(
            series("p50", "ms", lambda at: 12 + chance.random() * 4 + spike(at) / 20),
            series("p99", "ms", lambda at: 60 + chance.random() * 30 + spike(at) * 2),
            series("latest", "ms", lambda at: None if 0.2 < at < 0.22 else 90 + chance.random() * 150 + spike(at) * 9),
            series("submitted", "tasks/s", lambda at: 340 + 40 * math.sin(at * 9)),
            series("fired", "tasks/s", lambda at: 340 + 40 * math.sin(at * 9 - 0.2) - spike(at) * 0.3),
        ),
        heat=Heat(first_minute=STARTED_MS // 60_000, fired=rows),
        bands=tuple(
            Band(what=what, whom=HOSTILE, from_ms=end_ms * start // 100, to_ms=end_ms * stop // 100)
            for what, start, stop in faults
        ),
        tenures=tuple(tenure for shard in range(shards) for tenure in tenures(shard)),
        processes=tuple(
            Process(name=name, step_ms=1_000, cpu_percent=line(30), memory_mib=line(80)) for name in MEMBERS
        ),
        core_s_per_million=41.3,
        environment={"machine": "2 cores", HOSTILE: HOSTILE},
        remarks=(HOSTILE,),
    )


@pytest.fixture(scope="session")
def full_report() -> Report:
    return made(20)


@pytest.fixture(scope="session")
def day_report() -> Report:
    return made(1_440)
