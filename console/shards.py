"""How do the shards of an installation stand? Who owns each, how far it has got, and what waits for it.

It reads what the owners wrote and asks none of them, so that it works when they don't.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from ..store.minutes import Reads, waiting_in
from ..store.position import unpack_position
from ..store.progress import Offsets
from ..store.task import SHARDS, minute_of
from .command import Call
from .exits import ExitCode
from .patience import PatientReads, patiently
from .times import minute_text

if TYPE_CHECKING:
    from ..wiring import Installation

LATE_MINUTES = 5
AT_ONCE = 8
"""Shards that are asked about at the same time."""


class Standing(Struct, frozen=True, kw_only=True):
    """One shard. `owner` is empty while nobody holds it; `behind_minutes` says how far its lowest open minute is before
    the present one; `intake_lag` is how many offsets its three logs hold beyond those recorded; `waiting` counts the
    filings without a mark in its lowest open minute, and `late` those fired more than a second late in the last five
    minutes that are closed."""

    shard: int
    owner: str
    fence: int
    open_minute: int
    behind_minutes: int
    intake_lag: int
    waiting: int
    late: int


async def shards(call: Call) -> int:
    """Say of each shard who owns it, which minute is its lowest open one, and what waits for it."""
    from ..wiring import opened

    async with opened(call.settings, create=False) as installation:
        standings = await standings_of(installation)
    if call.output.json:
        for standing in standings:
            call.output.document(standing)
        return ExitCode.OK
    call.output.table(
        ("shard", "owner", "fence", "open minute", "behind", "intake lag", "waiting", "late"), map(_shown, standings)
    )
    return ExitCode.OK


def _shown(standing: Standing) -> tuple[object, ...]:
    shard, owner, fence, open_minute, *rest = (getattr(standing, name) for name in Standing.__struct_fields__)
    return shard, owner or "nobody", fence, minute_text(open_minute), *rest


async def standings_of(installation: "Installation") -> list[Standing]:
    owners = await patiently(installation.coordinator.owners)
    present = minute_of(installation.clock.now_ms())
    ask = installation.broker.bounds
    bounds = [await patiently(partial(ask, topic, range(SHARDS))) for topic in installation.topics.logs]
    ends = [[each.end for each in of_shard] for of_shard in zip(*bounds, strict=True)]
    store = PatientReads(installation.store)
    found: list[Standing] = []
    for first in range(0, SHARDS, AT_ONCE):
        group = range(first, min(first + AT_ONCE, SHARDS))
        asked = [_standing(store, shard, owners.get(shard, ""), ends[shard], present) for shard in group]
        found += await asyncio.gather(*asked)
    return found


async def _standing(store: Reads, shard: int, owner: str, ends: list[int], present: int) -> Standing:
    progress = await store.progress(shard, -1)
    minutes = range(progress.open_minute - LATE_MINUTES, progress.open_minute)
    closings = [await store.closing(shard, minute) for minute in minutes]
    return Standing(
        shard=shard,
        owner=owner,
        fence=progress.fence,
        open_minute=progress.open_minute,
        behind_minutes=max(0, present - progress.open_minute),
        intake_lag=_lag(progress.offsets, ends),
        waiting=await waiting_in(store, progress, progress.open_minute),
        late=sum(closing.late for closing in closings if closing is not None),
    )


def _lag(offsets: Offsets, ends: list[int]) -> int:
    return sum(max(0, end - unpack_position(at).offset) for at, end in zip(offsets, ends, strict=True))
