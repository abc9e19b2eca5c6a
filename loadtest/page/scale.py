"""Where does a value stand on an axis, and what is written beside it?

All places are from 0 to 1, from the left and from the bottom.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from .words import HOUR_MS, MINUTE_MS, SECOND_MS, elapsed, percent

TIME_STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(SECOND_MS * count for count in (1, 2, 5, 10, 15, 30)),
    *(MINUTE_MS * count for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * count for count in (1, 2, 3, 6, 12, 24, 48, 168)),
)
TICKS_TIME_MAX = 12
TICKS_MAX = 5
DECADES_FEW = 2
LOGARITHMIC = "logarithmic, with zero at the foot"
FLAT = 1e-9
"""What is no larger than this is drawn as nothing."""
NINES = (0, 50, 90, 99, 99.9, 99.99, 100)
NINES_END = 5.0
"""Where 100 % stands, which is infinitely many nines away."""


class Tick(Struct, frozen=True):
    """A line of the grid, and its label. On a narrow page those that are `fine` have none."""

    place: float
    text: str
    fine: bool = False


class Axis(Struct, frozen=True):
    """A scale with its ticks."""

    place: Callable[[float], float]
    ticks: tuple[Tick, ...]
    note: str = ""


def linear(least: float, most: float, text: Callable[[float], str]) -> Axis:
    """From zero, or below it if there is something, to the first round number that is not passed."""
    low, high = min(0.0, least), max(0.0, most)
    step = round_step((high - low) / TICKS_MAX) if high - low > FLAT else 1.0
    first, last = math.floor(low / step), max(1, math.ceil(high / step))
    bottom, span = first * step, (last - first) * step
    ticks = (Tick((mark - first) / (last - first), text(mark * step)) for mark in range(first, last + 1))
    return Axis(lambda value: _within((value - bottom) / span), tuple(ticks))


def logarithmic(least: float, most: float, text: Callable[[float], str]) -> Axis:
    """In whole powers of ten. What is not above the lowest stands on it."""
    low = math.floor(math.log10(least))
    high = max(low + 1, math.ceil(math.log10(most)))
    decades = high - low
    steps = (1, 2, 5) if decades <= DECADES_FEW else (1,)
    every = -(-decades // 8)
    marks = [step * 10.0**power for power in range(low, high, every) for step in steps]

    def place(value: float) -> float:
        return _within((math.log10(value) - low) / decades) if value > 0 else 0.0

    return Axis(place, tuple(Tick(place(mark), text(mark)) for mark in [*marks, 10.0**high]), LOGARITHMIC)


def fitting(values: Sequence[float], text: Callable[[float], str]) -> Axis:
    """Logarithmic where the largest would leave most of the others flat on the ground."""
    above = sorted(value for value in values if value > 0)
    if above and min(values) >= 0 and above[-1] >= 20 * above[len(above) // 2]:
        return logarithmic(max(above[0], above[-1] / 1e8), above[-1], text)
    return linear(min(values, default=0), max(values, default=0), text)


def times(end_ms: float) -> Axis:
    """From the beginning of the run to its end, in steps of a clock."""
    step_ms = next((step for step in TIME_STEPS_MS if end_ms / step <= TICKS_TIME_MAX), end_ms / TICKS_TIME_MAX)
    count = int(end_ms / step_ms)
    ticks = (
        Tick(mark * step_ms / end_ms, elapsed(mark * step_ms, step_ms), fine=bool(mark % _coarse(count)))
        for mark in range(count + 1)
    )
    return Axis(lambda ms: _within(ms / end_ms), tuple(ticks))


def nines() -> Axis:
    """Of percentages: each further nine is as wide as the one before."""

    def place(value: float) -> float:
        return min(-math.log10(1 - value / 100), NINES_END) / NINES_END if value < 100 else 1.0

    ticks = (Tick(place(value), percent(value), fine=value == 0) for value in NINES)
    return Axis(place, tuple(ticks), "from 90 % on, each step to the right leaves a tenth of the tasks")


def round_step(least: float) -> float:
    """The least of 1, 2, 5, 10, … that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _rounds() if step * power >= least * (1 - 1e-9))


def _rounds() -> Iterator[int]:
    yield from (1, 2, 5, 10, 20)


def _coarse(count: int) -> int:
    """So that at most four labels are left."""
    return -(-count // 4) or 1


def _within(place: float) -> float:
    return min(1.0, max(0.0, place))
