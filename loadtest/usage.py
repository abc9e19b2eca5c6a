"""How much CPU and memory does a process use, from one look to the next?

Read from `/proc`, where there is one: the CPU time of all threads of a process, and what of its memory is resident. On
other systems nothing is known, and the report has no figures for it.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .report import Process

MIB = 1 << 20


class Used(NamedTuple):
    """By a process since its begin, and now. `at_s` is of the monotonic clock."""

    at_s: float
    cpu_s: float
    memory_bytes: int


def used(pid: int, proc: Path = Path("/proc")) -> Used | None:
    """None if it has ended, or if the system does not say."""
    try:
        stat = (proc / str(pid) / "stat").read_text()
        resident = (proc / str(pid) / "statm").read_text().split()[1]
    except (OSError, IndexError):
        return None
    fields = stat.rpartition(")")[2].split()  # behind the name, which may hold anything
    if fields[0] in "ZX":
        return None
    ticks = int(fields[11]) + int(fields[12])
    return Used(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), int(resident) * os.sysconf("SC_PAGE_SIZE"))


class Usage:
    """Looks at processes by name, one a step, the first at step 0. What was used in a step lies between two looks."""

    def __init__(self, step_ms: int) -> None:
        self._step_ms = step_ms
        self._looks: dict[str, dict[int, Used]] = {}

    def look(self, step: int, looks: Mapping[str, Used | None]) -> None:
        for name, now in looks.items():
            if now is not None:
                self._looks.setdefault(name, {})[step] = now

    def cpu_s(self, name: str) -> float:
        """From the first look to the last; of one that began later, from its begin."""
        looks = self._looks.get(name)
        if not looks:
            return 0.0
        before_s = looks[0].cpu_s if 0 in looks else 0.0
        return looks[max(looks)].cpu_s - before_s

    def processes(self) -> tuple[Process, ...]:
        """A value for each step; None where a process was not seen."""
        steps = range(1, max((max(looks) for looks in self._looks.values()), default=0) + 1)
        return tuple(
            Process(
                name=name,
                step_ms=self._step_ms,
                cpu_percent=tuple(_percent(looks.get(step - 1), looks.get(step)) for step in steps),
                memory_mib=tuple(round(looks[step].memory_bytes / MIB, 1) if step in looks else None for step in steps),
            )
            for name, looks in self._looks.items()
        )


def _percent(before: Used | None, now: Used | None) -> float | None:
    """Of one core."""
    if before is None or now is None or now.at_s <= before.at_s:
        return None
    return round((now.cpu_s - before.cpu_s) / (now.at_s - before.at_s) * 100, 1)
