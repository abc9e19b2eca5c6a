"""What did the demo's tasks come to? Pure: what was submitted, held against what the workers' side wrote down."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct


class Start(Struct, frozen=True, gc=False):
    """A line of the worker's record: a handler began, by the wall clock."""

    key: str
    idempotency_key: str
    start_ms: int


class Percentiles(Struct, frozen=True):
    """Of some milliseconds; all 0 of none."""

    p50: int = 0
    p99: int = 0
    max: int = 0


class Report(Struct, frozen=True):
    """The demo's result.

    `submitted` were sent, `accepted` acknowledged by the broker, `fired` published to the queue, `done` started at
    least once. `lost` were accepted and never started; `duplicated` counts starts beyond a task's first, `early`
    starts before the due time. `lateness_ms` is from due to the start of the handler, `published_ms` from due to the
    publish, by the broker's clock.
    """

    submitted: int
    accepted: int
    fired: int
    done: int
    lost: int
    duplicated: int
    early: int
    lateness_ms: Percentiles
    published_ms: Percentiles
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.submitted == self.accepted == self.fired == self.done and not (
            self.lost or self.duplicated or self.early
        )


def count(
    submitted: int, accepted: Mapping[str, int], starts: Iterable[Start], published: Mapping[str, int], seconds: float
) -> Report:
    """`accepted` and `published` are by key: the due time, and the time of the first publish."""
    begun = [start for start in starts if start.key in accepted]
    per_key = Counter(start.key for start in begun)
    lateness = [start.start_ms - accepted[start.key] for start in begun]
    return Report(
        submitted=submitted,
        accepted=len(accepted),
        fired=len(accepted.keys() & published.keys()),
        done=len(per_key),
        lost=len(accepted) - len(per_key),
        duplicated=len(begun) - len(per_key),
        early=sum(late < 0 for late in lateness),
        lateness_ms=percentiles(lateness),
        published_ms=percentiles([at_ms - accepted[key] for key, at_ms in published.items() if key in accepted]),
        seconds=round(seconds, 1),
    )


def percentiles(values: Sequence[int]) -> Percentiles:
    """By the nearest rank: each is one of the values."""
    if not values:
        return Percentiles()
    ordered = sorted(values)

    def rank(percent: int) -> int:
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

    return Percentiles(rank(50), rank(99), ordered[-1])
