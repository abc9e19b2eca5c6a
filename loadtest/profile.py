"""Which tasks make up a load, and what happens to them before they are due?

Pure, and a stream: a profile says of each minute and shard how many tasks there are, when each is due and what will
be asked of it (cancelled, rescheduled, submitted late), from a seed and without memory of any other minute. The same
question has the same answer whenever it is asked, in whatever process.

    steady        the same number in each minute
    day           a diurnal curve; peaks at every full and half hour, half of them in its first millisecond; and six of
                  a thousand tasks in the minute of 9:00, evenly: 100,000 a second of a day of a billion
    campaign      steady, and two million (at most a fifth of all) at 9:00:00.000, of one tenant beside a thousand small
    soak          two days, steady, payloads of up to 4 KB
    cancel-heavy  steady, a fifth of all tasks are cancelled and a tenth rescheduled
    retry-storm   steady; from 9:00 to 10:00 a third of the sampled attempts fail
    far-future    steady, and a fifth of all tasks are submitted late, most of these for a time beyond the last minute
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from math import cos, pi
from random import Random
from typing import Literal, NamedTuple

from msgspec import Struct

from ..store.task import MINUTE_MS, SHARDS

Name = Literal["steady", "day", "campaign", "soak", "cancel-heavy", "retry-storm", "far-future"]
Kind = Literal["cancel", "reschedule", "late"]
DAY = 1_440
NINE = 540
NINE_SHARE = 0.006
CAMPAIGN = 2_000_000
CAMPAIGN_SHARE_MAX = 0.2
LEAD_MS_MAX = 600_000
"""A cancel or reschedule comes at most so long before its task is due."""
LATE_MS_MIN, LATE_MS_MAX = 5_000, 15_000
MOVED_MS_MAX = 1_800_000
"""A rescheduled task is due at most so long after it was due at first."""
FAR_MS_MIN = 2 * MOVED_MS_MAX
FAR_MS_MAX = 10 * 365 * DAY * MINUTE_MS


class Mix(Struct, frozen=True, kw_only=True):
    """Of so many of a minute's tasks (1.0 is all): what comes beside the plain firing.

    `late` are submitted on top, shortly before they are due; of these `far` are due beyond the last minute.
    `failed` and `done` are of the attempts whose outcome is told; what is told of no attempt changes nothing in the
    shard.
    """

    cancel: float = 0.015
    reschedule: float = 0.01
    late: float = 0.015
    far: float = 0.0
    failed: float = 0.01
    done: float = 0.005


MIXES: dict[Name, Mix] = {
    "cancel-heavy": Mix(cancel=0.2, reschedule=0.1),
    "far-future": Mix(late=0.2, far=0.9),
    "retry-storm": Mix(failed=0.02),
}
STORM_FAILED = 0.3
MINUTES: dict[Name, int] = {"soak": 2 * DAY}
SIZES = (40, 60, 60, 75, 75, 75, 90, 120)
SOAK_SIZES = (40, 75, 75, 120, 300, 1_000, 4_000)
"""Payload bytes, each as often as the others."""
TENANTS = 1_024
"""The small ones, each with as many tasks as the others."""
BIG_TENANT = "big00"


class Change(NamedTuple):
    """What is asked of a minute's task, and when. `place` is its place among the minute's tasks of its shard; that of
    a late one counts the late ones. `due_ms` is the new due time, or of a cancelled task the old one."""

    at_ms: int
    kind: Kind
    place: int
    due_ms: int


class Profile:
    """One load: `tasks` in all 64 shards, from `midnight_ms` on; or only the `span` of it, as minutes of it."""

    def __init__(self, name: Name, tasks: int, seed: int, midnight_ms: int, span: range | None = None) -> None:
        self.name: Name = name
        self.tasks = tasks
        self.seed = seed
        self.midnight_ms = midnight_ms
        self.minutes = MINUTES.get(name, DAY)
        self.span = range(self.minutes) if span is None else span
        self.mix = MIXES.get(name, Mix())
        self.sizes = SOAK_SIZES if name == "soak" else SIZES
        self._up_to = _cumulated(_weights(name, tasks, self.minutes), tasks)

    @property
    def start_ms(self) -> int:
        return self.midnight_ms + self.span.start * MINUTE_MS

    @property
    def end_ms(self) -> int:
        return self.midnight_ms + self.span.stop * MINUTE_MS

    def of_minute(self, minute: int) -> int:
        """How many tasks are due in this minute (0 is the first)."""
        return self._up_to[minute + 1] - self._up_to[minute]

    def around_nine(self, shard: int, tasks: int) -> range:
        """The shortest stretch with 9:00 at three quarters of it in which a shard has so many tasks; else all."""
        first = last = min(NINE, self.minutes - 1)
        count = self.of_shard(shard, first)
        while count < tasks and (first > 0 or last < self.minutes - 1):
            back = first > 0 and (last == self.minutes - 1 or NINE - first <= 3 * (last - NINE))
            first, last = (first - 1, last) if back else (first, last + 1)
            count += self.of_shard(shard, first if back else last)
        return range(first, last + 1)

    def of_shard(self, shard: int, minute: int) -> int:
        """How many of them fall into a shard. What is left over by even division goes to other shards each minute."""
        if minute not in self.span:
            return 0
        each, rest = divmod(self.of_minute(minute), SHARDS)
        return each + ((shard + 37 * minute) % SHARDS < rest)

    def dues(self, shard: int, minute: int) -> Sequence[int]:
        """Their due times, ascending."""
        count = self.of_shard(shard, minute)
        start_ms = self.midnight_ms + minute * MINUTE_MS
        sharp = int(count * self._sharp(minute))
        spread = array("H", self._chance("dues", shard, minute).randbytes(2 * (count - sharp)))
        dues = array("Q", (start_ms,)) * sharp
        dues.extend([start_ms + (at * MINUTE_MS >> 16) for at in sorted(spread)])
        return dues

    def campaign(self, shard: int, minute: int) -> int:
        """How many of a minute's first tasks belong to the campaign."""
        big = self.name == "campaign" and minute % DAY == NINE
        return int(self.of_shard(shard, minute) * self._sharp(minute)) if big else 0

    def small(self, minute: int, index: int) -> int:
        """Whose a task is that is not the campaign's: 0 … TENANTS - 1. Its payload's size goes with it."""
        return (index + 7 * minute) % TENANTS

    def failed(self, minute: int) -> float:
        """Which share of a minute's attempts is told to have failed."""
        if self.name == "retry-storm" and 0 <= minute % DAY - NINE < 60:
            return STORM_FAILED
        return self.mix.failed

    def changes(self, shard: int, minute: int, dues: Sequence[int]) -> list[Change]:
        """What is asked of the tasks of a minute and shard, of which `dues` are the due times; in no order.

        No task is asked for twice. What would be asked before the span is asked at its beginning.
        """
        chance, mix, count = self._chance("changes", shard, minute), self.mix, len(dues)
        cancelled, moved, late = (_share(chance, part, count) for part in (mix.cancel, mix.reschedule, mix.late))

        def below(limit: int) -> int:  # `randrange` takes five times as long
            return int(chance.random() * limit)

        changes: list[Change] = []
        for number, index in enumerate(chance.sample(range(count), cancelled + moved)):
            due_ms = dues[index]
            at_ms = max(self.start_ms, due_ms - 1 - below(LEAD_MS_MAX))
            if number < cancelled:
                changes.append(Change(at_ms, "cancel", index, due_ms))
            else:
                changes.append(Change(at_ms, "reschedule", index, due_ms + 1 + below(MOVED_MS_MAX)))
        for index in range(late):
            at_ms = self.midnight_ms + minute * MINUTE_MS + below(MINUTE_MS)
            ahead_ms = LATE_MS_MIN + below(LATE_MS_MAX - LATE_MS_MIN)
            if chance.random() < mix.far:
                ahead_ms = self.end_ms - at_ms + FAR_MS_MIN + below(FAR_MS_MAX)
            changes.append(Change(at_ms, "late", index, at_ms + ahead_ms))
        return changes

    def _sharp(self, minute: int) -> float:
        """Which share of a minute's tasks is due in its first millisecond."""
        if self.name == "campaign" and minute % DAY == NINE:
            return _campaign_share(self.tasks) * self.tasks / self.of_minute(minute)
        if self.name == "day" and minute % 30 == 0 and minute % DAY != NINE:
            return 0.5
        return 0.0

    def _chance(self, what: str, shard: int, minute: int) -> Random:
        return Random(f"{self.name} {self.seed} {what} {shard} {minute}")


def tenant_name(small: int) -> str:
    """As long as that of the big one."""
    return f"t{small:04d}"


def _campaign_share(tasks: int) -> float:
    return min(CAMPAIGN_SHARE_MAX, CAMPAIGN / max(1, tasks))


def _share(chance: Random, share: float, count: int) -> int:
    """So large a share of some, rounded up or down so that it comes out on average."""
    whole, rest = divmod(share * count, 1)
    return min(count, int(whole) + (chance.random() < rest))


def _weights(name: Name, tasks: int, minutes: int) -> list[float]:
    """How the tasks are shared among the minutes; the sum is 1."""
    if name == "campaign":
        return _with_nine([1.0] * minutes, _campaign_share(tasks), on_top=True)
    if name == "day":
        return _with_nine([_diurnal(minute) for minute in range(minutes)], NINE_SHARE, on_top=False)
    return [1 / minutes] * minutes


def _diurnal(minute: int) -> float:
    """Least at three in the night, most at three in the afternoon; four times as many at a full hour, twice at half."""
    base = 0.55 - 0.45 * cos(2 * pi * (minute - 180) / DAY)
    return base * {0: 4, 30: 2}.get(minute % 60, 1)


def _with_nine(weights: list[float], share: float, *, on_top: bool) -> list[float]:
    """The same, with so large a share of all at 9:00, in place of what was there or on top of it."""
    if not on_top:
        weights[NINE] = 0.0
    rest = sum(weights)
    shared = [weight / rest * (1 - share) for weight in weights]
    shared[NINE] += share
    return shared


def _cumulated(weights: Sequence[float], tasks: int) -> list[int]:
    sums = list(accumulate(weights, initial=0.0))
    return [round(tasks * part / sums[-1]) for part in sums]
