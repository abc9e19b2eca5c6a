"""What did a run come to, by records that ask nothing of the product?

Pure. Held against each other: what the generator sent and the broker acknowledged, what stands in the due topic by the
broker's clock, and what each worker process wrote down when a handler began. A task is judged by what was asked for:

    lost        it was accepted, and by the end not fired, or its last attempt (the one that does not fail) not begun
    early       it was fired or begun before its due time
    duplicated  an attempt began again, without excuse

There is one excuse, for a handler that is cut off is promised only to run at least once: a process that began it was
killed or paused about then, and the idempotency key is the same. Another key is a second effect.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ..store.task import SHARDS, minute_of
from .figures import percentile_of
from .report import Counts, Heat, Lateness, Series, Tenure

PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
STEP_MS = 1_000
SETTLED_MS = 5_000
"""After so long an attempt is in the ledger, if its worker was left alone."""


class Sent(NamedTuple):
    """A submission; `accepted_ms` is the broker's time, None if it was not acknowledged. Its first `failures` attempts
    are to fail."""

    key: str
    due_ms: int
    sent_ms: int
    accepted_ms: int | None
    failures: int = 0


class Delivery(NamedTuple):
    """A record of the due topic, and the broker's time of it."""

    key: str
    shard: int
    filing: int
    at_ms: int


class Start(NamedTuple):
    """A handler began, in this process."""

    key: str
    idempotency_key: str
    at_ms: int
    process: str
    attempt: int = 1


class Strike(NamedTuple):
    """A process was killed or paused, and this is how long that lasted."""

    process: str
    from_ms: int
    to_ms: int


class Evidence:
    """All records of a run, and what follows from them. Times are Unix milliseconds.

    Of an interrupted run, only what was due before `judged_ms` can be lost: the rest may still have come.
    """

    def __init__(
        self,
        started_ms: int,
        ended_ms: int,
        sent: Sequence[Sent],
        deliveries: Iterable[Delivery],
        starts: Iterable[Start],
        strikes: Sequence[Strike] = (),
        tenures: Sequence[Tenure] = (),
        *,
        judged_ms: int | None = None,
    ) -> None:
        self.started_ms, self.ended_ms, self._judged_ms = started_ms, ended_ms, judged_ms
        self._sent, self._strikes, self._tenures = sent, strikes, tenures
        self._failures = ours = {one.key: one.failures for one in sent}
        self._deliveries = [one for one in deliveries if one.key in ours]
        self._starts: dict[str, list[Start]] = defaultdict(list)
        for start in sorted(starts, key=lambda start: start.at_ms):
            if start.key in ours:
                self._starts[start.key].append(start)

    @cached_property
    def accepted(self) -> dict[str, Sent]:
        return {one.key: one for one in self._sent if one.accepted_ms is not None}

    @cached_property
    def fired(self) -> dict[str, Delivery]:
        """The first delivery of each accepted task."""
        first: dict[str, Delivery] = {}
        for one in sorted(self._deliveries, key=lambda one: one.at_ms):
            if one.key in self.accepted:
                first.setdefault(one.key, one)
        return first

    @cached_property
    def done(self) -> dict[str, Start]:
        """The first start of the last attempt of each accepted task."""
        return {
            one.key: last
            for one in self.accepted.values()
            for last in [start for start in self._starts.get(one.key, ()) if start.attempt > one.failures][:1]
        }

    @property
    def counts(self) -> Counts:
        return Counts(
            submitted=len(self._sent),
            accepted=len(self.accepted),
            rejected=len(self._sent) - len(self.accepted),
            fired=len(self.fired),
            done=len(self.done),
            lost=sum(self._lost(one) for one in self.accepted.values()),
            duplicated=sum(self._again(starts) and not self._excused(starts) for starts in self._starts.values()),
            early=sum(self._early(one) for one in self._sent),
            recovered=sum(self._recovered(key, one) for key, one in self.fired.items()),
        )

    def _lost(self, one: Sent) -> bool:
        return self._judged(one) and self._missing(one)

    def _judged(self, one: Sent) -> bool:
        return self._judged_ms is None or max(one.due_ms, one.accepted_ms or 0) < self._judged_ms

    def _missing(self, one: Sent) -> bool:
        return not (one.key in self.fired and one.key in self.done)

    def _early(self, one: Sent) -> bool:
        """Whether or not it was acknowledged."""
        times_ms = [*self._fired_ms.get(one.key, ()), *(start.at_ms for start in self._starts.get(one.key, ()))]
        return bool(times_ms) and min(times_ms) < one.due_ms

    @cached_property
    def _fired_ms(self) -> dict[str, list[int]]:
        times_ms: dict[str, list[int]] = defaultdict(list)
        for one in self._deliveries:
            times_ms[one.key].append(one.at_ms)
        return times_ms

    def _again(self, starts: Sequence[Start]) -> bool:
        """An attempt began twice, or one more than was planned, or under another key."""
        attempts = {start.attempt for start in starts}
        once = len(starts) == len(attempts) <= self._failures[starts[0].key] + 1
        return not once or len({start.idempotency_key for start in starts}) > 1

    def _excused(self, starts: Sequence[Start]) -> bool:
        return len({start.idempotency_key for start in starts}) == 1 and any(map(self._struck, starts))

    def _struck(self, start: Start) -> bool:
        return any(
            strike.process == start.process and strike.from_ms - SETTLED_MS <= start.at_ms <= strike.to_ms + SETTLED_MS
            for strike in self._strikes
        )

    def _recovered(self, key: str, delivery: Delivery) -> bool:
        """Its shard got another owner between its acceptance and its firing."""
        begins_ms = self._begins_ms.get(delivery.shard, [])
        accepted_ms = self.accepted[key].accepted_ms or 0
        return bisect_right(begins_ms, accepted_ms) < bisect_right(begins_ms, delivery.at_ms)

    @cached_property
    def _begins_ms(self) -> dict[int, list[int]]:
        begins_ms: dict[int, list[int]] = defaultdict(list)
        for tenure in sorted(self._tenures, key=lambda tenure: tenure.from_ms):
            begins_ms[tenure.shard].append(tenure.from_ms)
        return begins_ms

    def _late_ms(self, delivery: Delivery) -> int:
        asked = self.accepted[delivery.key]
        return max(0, delivery.at_ms - max(asked.due_ms, asked.accepted_ms or 0))

    @property
    def lateness(self) -> Lateness:
        counted = Counter(map(self._late_ms, self.fired.values()))
        return Lateness(percentiles_ms=tuple((percent, percentile_of(counted, percent)) for percent in PERCENTS))

    @property
    def series(self) -> tuple[Series, ...]:
        """A second each: the lateness by the second in which the tasks were due."""
        late_ms: dict[int, Counter[int]] = defaultdict(Counter)
        for key, one in self.fired.items():
            late_ms[self._step(self.accepted[key].due_ms)][self._late_ms(one)] += 1
        return (
            self._per_s("submitted", [one.sent_ms for one in self._sent]),
            self._per_s("fired", [one.at_ms for one in self.fired.values()]),
            self._per_s("done", [one.at_ms for one in self.done.values()]),
            self._lateness("lateness p50", late_ms, 50),
            self._lateness("lateness p99", late_ms, 99),
        )

    def _per_s(self, name: str, times_ms: Iterable[int]) -> Series:
        counted = Counter(map(self._step, times_ms))
        return Series(name=name, unit="tasks/s", step_ms=STEP_MS, values=tuple(counted[at] for at in self._steps))

    def _lateness(self, name: str, late_ms: Mapping[int, Counter[int]], percent: int) -> Series:
        values = [percentile_of(late_ms[at], percent) if at in late_ms else None for at in self._steps]
        return Series(name=name, unit="ms", step_ms=STEP_MS, values=tuple(values))

    def _step(self, at_ms: int) -> int:
        return (at_ms - self.started_ms) // STEP_MS

    @property
    def _steps(self) -> range:
        return range(self._step(self.ended_ms) + 1)

    @property
    def heat(self) -> Heat | None:
        """None of nothing."""
        if not self.fired:
            return None
        minutes = [minute_of(one.at_ms) for one in self.fired.values()]
        first = min(minutes)
        fired = [[0] * SHARDS for _ in range(max(minutes) - first + 1)]
        for minute, one in zip(minutes, self.fired.values(), strict=True):
            fired[minute - first][one.shard] += 1
        return Heat(first_minute=first, fired=tuple(map(tuple, fired)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the counts leave out."""
        again = sum(self._again(starts) and self._excused(starts) for starts in self._starts.values())
        begun = [start for starts in self._starts.values() for start in starts]
        failed = sum(start.attempt <= self._failures[start.key] for start in begun)
        repeated = len(self._deliveries) - len({(one.shard, one.filing) for one in self._deliveries})
        unheard = len({one.key for one in self._deliveries} - self.accepted.keys())
        behind_ms = [(one.accepted_ms or 0) - one.due_ms for one in self.accepted.values()]
        after_due = [behind for behind in behind_ms if behind > 0]
        from_due_ms = max((one.at_ms - self.accepted[key].due_ms for key, one in self.fired.items()), default=0)
        open_ = sum(self._missing(one) and not self._judged(one) for one in self.accepted.values())
        told = {
            f"{open_:,} tasks had not begun when the run was interrupted; whether they are lost was not judged": open_,
            f"{failed:,} attempts failed, as was planned": failed,
            f"{repeated:,} deliveries were repeated; workers skip these by the ledger": repeated,
            f"{again:,} handlers that a fault had cut off, or nearly, began again": again,
            f"{unheard:,} submissions that were not acknowledged were fired all the same": unheard,
            f"{len(after_due):,} tasks were accepted after their due time, at most {max(after_due, default=0):,} ms;"
            f" counted from the due time alone, the latest of all was {from_due_ms:,} ms late": len(after_due),
        }
        return tuple(text for text, count in told.items() if count)


def tenures_of(samples: Sequence[tuple[int, Mapping[int, str]]], end_ms: int) -> tuple[Tenure, ...]:
    """Who owned each shard from when to when, by looks at all owners; each begins and ends at a look."""
    open_: dict[int, Tenure] = {}
    found: list[Tenure] = []
    for at_ms, owners in [*samples, (end_ms, {})]:
        for shard in [shard for shard, one in open_.items() if owners.get(shard) != one.member]:
            one = open_.pop(shard)
            found.append(Tenure(shard=shard, member=one.member, from_ms=one.from_ms, to_ms=at_ms))
        for shard, member in owners.items():
            open_.setdefault(shard, Tenure(shard=shard, member=member, from_ms=at_ms, to_ms=at_ms))
    return tuple(sorted(found, key=lambda one: (one.shard, one.from_ms)))
