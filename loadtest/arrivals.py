"""When does each task of a run arrive, and for when is it due?

Pure: everything is known before the first task is sent, and nothing that the system answers can change it. So the load
is open: a system that becomes slow meets the same arrivals, and is late for due times that it had no part in.

The due times are those of a profile (see `profile`) whose whole time, a day or two, is pressed together into the length
of the run: of `day` the night comes first, and the minute of 9:00 lasts a 1,440th of the run. Each task arrives a few
seconds ahead of its due time, drawn from the seed, so what is due in one millisecond has arrived over some seconds.
A profile's shards are not kept: here the key decides, as for any producer. Cancels, reschedules and late arrivals are
not played, so the profiles that are made of them have no run. Of `retry-storm`, three of ten attempts fail in the hour
after 9:00 and two of a hundred else, at most two of a task; which ones is known before, too.
"""

from collections.abc import Iterator
from itertools import accumulate
from operator import and_
from random import Random
from typing import Literal, NamedTuple

from ..store.task import MINUTE_MS, SHARDS
from .profile import BIG_TENANT, Profile, tenant_name

Shape = Literal["steady", "day", "campaign", "soak", "retry-storm"]
AHEAD_MS = (1_000, 3_000)
"""So long before its due time a task arrives, at least and at most."""
TASKS_MAX = 1_000_000
"""Each is kept in memory with its planned and its real times."""
FAILURES_MAX = 2


class Arrival(NamedTuple):
    """A task to be sent. Times count from the begin of the run."""

    at_ms: int
    due_ms: int
    id: str
    tenant: str
    payload_bytes: int
    failures: int = 0
    """So many of its attempts fail, the first ones."""


def tasks_of(rate: float, length_ms: int) -> int:
    return max(1, round(rate * length_ms / 1_000))


def arrivals(shape: Shape, rate: float, length_ms: int, seed: int) -> list[Arrival]:
    """So many a second on average, in the order in which they arrive. The last is due `AHEAD_MS` after the length."""
    profile = Profile(shape, tasks_of(rate, length_ms), seed, 0)
    chance = Random(f"{shape} {seed} ahead")
    whole_ms = profile.minutes * MINUTE_MS
    found = []
    for number, (due_ms, tenant, payload_bytes, failed) in enumerate(_tasks(profile)):
        pressed_ms = AHEAD_MS[1] + due_ms * length_ms // whole_ms
        at_ms = pressed_ms - chance.randint(*AHEAD_MS)
        failures = sum(accumulate([chance.random() < failed for _ in range(FAILURES_MAX)], and_))
        found.append(Arrival(at_ms, pressed_ms, str(number), tenant, payload_bytes, failures))
    return sorted(found)


def _tasks(profile: Profile) -> Iterator[tuple[int, str, int, float]]:
    """Due time in the profile's own time, tenant, size of the payload, share of failing attempts."""
    for minute in profile.span:
        if profile.of_minute(minute):
            for shard in range(SHARDS):
                yield from _of_shard(profile, shard, minute)


def _of_shard(profile: Profile, shard: int, minute: int) -> Iterator[tuple[int, str, int, float]]:
    if not profile.of_shard(shard, minute):
        return
    campaign = profile.campaign(shard, minute)
    failed = profile.failed(minute) if profile.name == "retry-storm" else 0.0
    for index, due_ms in enumerate(profile.dues(shard, minute)):
        small = profile.small(minute, index * SHARDS + shard)
        tenant = BIG_TENANT if index < campaign else tenant_name(small)
        yield due_ms, tenant, profile.sizes[small % len(profile.sizes)], failed
