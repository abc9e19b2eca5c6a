"""How is a line of many steps drawn with few points, and nothing that stands out left out?

So many steps that follow each other make a column, and of each column its least and its largest value are drawn, each
where it was. So a spike of one second in a day is as high as it was; what is lost is how often.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

COLUMNS_MAX = 500
Point = tuple[float, float]


class Thinned(Struct, frozen=True):
    """Points (step, value), None where there is a gap; `steps` is how many make a column: 1 if all are drawn."""

    points: tuple[Point | None, ...]
    steps: int


def thinned(values: Sequence[float | None], columns: int = COLUMNS_MAX) -> Thinned:
    """A column in which nothing was measured is a gap. Up to twice the columns, all is drawn as it is."""
    if len(values) <= 2 * columns:
        return Thinned(tuple(None if value is None else (step, value) for step, value in enumerate(values)), 1)
    steps = -(-len(values) // columns)
    starts = range(0, len(values), steps)
    return Thinned(tuple(point for start in starts for point in _extremes(values, start, steps)), steps)


def _extremes(values: Sequence[float | None], start: int, steps: int) -> Iterator[Point | None]:
    known = [(start + at, value) for at, value in enumerate(values[start : start + steps]) if value is not None]
    if not known:
        yield None
        return
    yield from sorted({min(known, key=lambda one: one[1]), max(known, key=lambda one: one[1])})
