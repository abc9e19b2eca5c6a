"""Which shards fired how many tasks in which minute? A map of both, in eight steps from none to the most."""

import math
from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from ..report import Heat, Report
from .frame import SIZE, Course, area, faults, framed
from .markup import Html, folded, table, tag
from .scale import Axis, Tick
from .words import MINUTE_MS, lasting, number, tasks

LEVELS = 7
COLUMNS_MAX = 1_440
ROW_PX = (5, 18)
HEIGHT_PX = 320
LABELS = 8


class Steps(Struct, frozen=True):
    """Upper ends of the levels 1, 2, …: counts up to and with them. Level 0 is none at all."""

    ends: tuple[int, ...]

    def level(self, count: int) -> int:
        return next(level for level, end in enumerate((0, *self.ends)) if count <= end)

    def texts(self) -> list[str]:
        starts = (1, *(end + 1 for end in self.ends))
        both = zip(starts, self.ends, strict=False)
        return ["0", *(number(low) if low == high else f"{number(low)}–{number(high)}" for low, high in both)]


def steps_of(counts: Sequence[int]) -> Steps:
    """Even ones; where the fullest minute has twenty times what is usual, each step a multiple of the one before."""
    some = sorted(count for count in counts if count)
    if not some:
        return Steps(())
    most, usual, least = some[-1], some[len(some) // 2], some[0]
    if most < 20 * usual:
        ends = [math.ceil(most * step / LEVELS) for step in range(1, LEVELS + 1)]
    else:
        low = max(1, least)
        ends = [round(low * (most / low) ** (step / LEVELS)) for step in range(1, LEVELS)] + [most]
    return Steps(tuple(sorted(set(ends))))


def heat_chart(report: Report, heat: Heat, course: Course) -> Html:
    rows, together = _grouped(heat)
    shards = len(rows[0])
    steps = steps_of([count for row in rows for count in row])
    left_ms = heat.first_minute * MINUTE_MS - report.started_ms
    wide, high = together * MINUTE_MS / course.end_ms * SIZE, SIZE / shards
    across = f"translate({left_ms / course.end_ms * SIZE:.2f} 0) scale({wide:.5f} {high:.5f})"
    levels = [[steps.level(count) for count in row] for row in rows]
    paths = (tag("path", d=_cells(levels, level), class_=f"heat h{level}") for level in range(len(steps.ends) + 1))
    most = max((count, minute, shard) for minute, row in enumerate(rows) for shard, count in enumerate(row))
    said = f"{shards} shards, {len(heat.fired):,} minutes; at most {tasks(most[0])}, in shard {most[2]}"
    drawing = area("Tasks by minute and shard", said, tag("g", *paths, transform=across), faults(course, tint=False))
    column = "a minute" if together == 1 else f"{together} minutes"
    each = max(ROW_PX[0], min(ROW_PX[1], HEIGHT_PX // shards))
    return tag(
        "figure",
        tag(
            "figcaption", tag("h3", "Tasks by minute and shard"), tag("p", f"shard 0 at the top · a column is {column}")
        ),
        _legend(steps, together),
        framed(drawing, each * shards, course.axis, shard_axis(shards, LABELS), course),
        folded("In numbers", table(("shard", "tasks", "least in a minute", "most in a minute"), _totals(heat))),
        class_="chart",
    )


def shard_axis(shards: int, labels: int) -> Axis:
    """Shard 0 at the top; labels are at the middle of their rows."""
    every = max(1, -(-shards // labels))
    ticks = (Tick(1 - (shard + 0.5) / shards, str(shard)) for shard in range(0, shards, every))
    return Axis(lambda shard: 1 - (shard + 0.5) / shards, tuple(ticks))


def _grouped(heat: Heat) -> tuple[Sequence[Sequence[int]], int]:
    """At most so many columns: of more minutes some are added up, and nothing is left out."""
    together = -(-len(heat.fired) // COLUMNS_MAX)
    if together == 1:
        return heat.fired, 1
    starts = range(0, len(heat.fired), together)
    parts = (heat.fired[start : start + together] for start in starts)
    return [[sum(column) for column in zip(*part, strict=True)] for part in parts], together


def _cells(levels: Sequence[Sequence[int]], wanted: int) -> str:
    """Strokes as high as a row, each through neighbours of this level."""
    drawn = []
    for shard, column in enumerate(zip(*levels, strict=True)):
        minute = 0
        for level, same in groupby(column):
            length = sum(1 for _ in same)
            if level == wanted:
                drawn.append(f"M{minute} {shard}.5h{length}")
            minute += length
    return "".join(drawn)


def _legend(steps: Steps, together: int) -> Html:
    swatches = (tag("li", tag("i", class_=f"swatch h{level}"), text) for level, text in enumerate(steps.texts()))
    unit = f"tasks in {lasting(together * MINUTE_MS)}"
    return tag("ul", tag("li", unit, class_="unit"), *swatches, class_="legend")


def _totals(heat: Heat) -> list[tuple[str, ...]]:
    columns = enumerate(zip(*heat.fired, strict=True))
    return [(str(shard), number(sum(one)), number(min(one)), number(max(one))) for shard, one in columns]
