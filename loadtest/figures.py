"""What was measured, and does it keep the budget?

Pure. A `Figure` stands beside its budget, and says whether it is met: figures of time and work must not be above
theirs, figures of speed not below.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class Figure(Struct, frozen=True):
    """One figure, what it may be, and whether it is."""

    figure: float
    budget: float
    met: bool


class Lateness(Struct, frozen=True):
    """Milliseconds from the due time to the broker's acknowledgement, as it was heard."""

    p50_ms: Figure
    p99_ms: Figure
    max_ms: int


def at_most(figure: float, budget: float) -> Figure:
    """Of time or work."""
    return Figure(round(figure, 3), budget, figure <= budget)


def at_least(figure: float, budget: float) -> Figure:
    """Of speed."""
    return Figure(round(figure, 1), budget, figure >= budget)


def lateness(late_ms: Sequence[int], p50_ms: float, p99_ms: float) -> Lateness:
    """The percentiles of some, which are at least one, beside their budgets."""
    ordered = sorted(late_ms)
    return Lateness(at_most(percentile(ordered, 50), p50_ms), at_most(percentile(ordered, 99), p99_ms), ordered[-1])


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest of them that so many percent are not above."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def percentile_of(counts: Mapping[int, int], percent: float) -> int:
    """The same of values that are counted: value → how often; 0 if there are none."""
    rest = sum(counts.values()) * percent / 100
    for value in sorted(counts):
        rest -= counts[value]
        if rest <= 0:
            return value
    return 0
