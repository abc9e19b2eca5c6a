"""Who owned which shard when, and how long had one no owner?"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ..report import Tenure
from .frame import SIZE, Course, area, faults, framed
from .heat import shard_axis
from .markup import Html, folded, table, tag
from .words import MISSING, lasting

COLOURS = 8
ROW_PX = 13
LABELS = 16
NAMES_MAX = 1_000
WIDTH_MIN = 0.025
"""Of a tenure that has room for its owner's letters."""


def owners_chart(tenures: Sequence[Tenure], course: Course) -> Html:
    shards = 1 + max(one.shard for one in tenures)
    members = {member: index for index, member in enumerate(dict.fromkeys(sorted(one.member for one in tenures)))}
    paths = (
        tag("path", d=_bars([one for one in tenures if one.member == member], course), class_=f"bar m{index % COLOURS}")
        for member, index in members.items()
    )
    rows = tag("g", *paths, transform=f"scale(1 {SIZE / shards:.5f})")
    gap = max((gap for gap, _ in gaps(tenures)), default=0)
    said = f"{shards} shards, {len(members)} members; the longest time without an owner was {lasting(gap)}"
    drawing = area("Owners of the shards", said, rows, faults(course, tint=False), class_="track")
    names = tag("div", *_names(tenures, members, shards, course), class_="over", aria_hidden="true")
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("h3", "Owners of the shards"),
            tag("p", f"shard 0 at the top · longest time of a shard without an owner: {lasting(gap)}"),
        ),
        tag("ul", *_legend(members), class_="legend"),
        framed(drawing, ROW_PX * shards, course.axis, shard_axis(shards, LABELS), course, names),
        folded("In numbers", _table(tenures, members)),
        class_="chart",
    )


def gaps(tenures: Sequence[Tenure]) -> Iterator[tuple[int, int]]:
    """Each time between two owners of a shard, in ms, and which shard."""
    ordered = sorted(tenures, key=lambda one: (one.shard, one.from_ms))
    for before, after in pairwise(ordered):
        if before.shard == after.shard and after.from_ms > before.to_ms:
            yield after.from_ms - before.to_ms, after.shard


def letters(index: int) -> str:
    """A, B, … Z, AA, AB, …"""
    return (letters(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def _bars(tenures: Sequence[Tenure], course: Course) -> str:
    return "".join(f"M{course.x(one.from_ms)} {one.shard}.5H{course.x(one.to_ms)}" for one in tenures)


def _names(tenures: Sequence[Tenure], members: Mapping[str, int], shards: int, course: Course) -> Iterator[Html]:
    shown = 0
    for one in tenures:
        left, right = course.axis.place(one.from_ms), course.axis.place(one.to_ms)
        if right - left < WIDTH_MIN or shown == NAMES_MAX:
            continue
        shown += 1
        index = members[one.member]
        where = f"left:{left:.2%};top:{one.shard / shards:.2%}"
        yield tag("span", letters(index), class_=f"name m{index % COLOURS}", style=where)


def _legend(members: Mapping[str, int]) -> Iterator[Html]:
    for member, index in members.items():
        yield tag("li", tag("span", letters(index), class_=f"name m{index % COLOURS}"), member)


def _table(tenures: Sequence[Tenure], members: Mapping[str, int]) -> Html:
    rows = []
    for member, index in members.items():
        own = [one for one in tenures if one.member == member]
        shards = len({one.shard for one in own})
        time_ms = sum(one.to_ms - one.from_ms for one in own)
        rows.append((letters(index), member, str(len(own)), str(shards), lasting(time_ms) if time_ms else MISSING))
    return table(("letter", "member", "tenures", "shards", "time, over its shards"), rows)
