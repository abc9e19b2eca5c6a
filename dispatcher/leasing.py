"""Which shards should this dispatcher take and give up, and may it act for those that it has?

The shell around `coordinator.lease` and `coordinator.balance`: it renews from the event loop (so that a wedged loop
loses its shards), looks at members and owners, and tells the dispatcher what to do.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

from ..coordinator import (
    Coordinator,
    CoordinatorUnavailable,
    LeaseLost,
    Membership,
    Session,
    Sightings,
    Trust,
    assign,
    changes,
)
from ..store.task import SHARDS
from .clock import Clock


class Leasing:
    """One session at the coordinator. It is over for good when `renew` has said so."""

    def __init__(self, membership: Membership, member: str, clock: Clock, sent_ms: int, settle_ms: int) -> None:
        self.member = member
        self._membership = membership
        self._clock = clock
        self._settle_ms = settle_ms
        self.expects = False
        """At the last look, did another one still hold a shard that is to be mine?"""
        self._changing: set[int] = set()
        self._sightings = Sightings()
        self._session = Session(Trust(sent_ms, membership.session_timeout_ms), membership.breaks)

    @classmethod
    async def join(cls, coordinator: Coordinator, member: str, clock: Clock, settle_ms: int) -> "Leasing":
        sent_ms = clock.monotonic_ms()
        return cls(await coordinator.join(member), member, clock, sent_ms, settle_ms)

    def may_act(self) -> bool:
        """Ask right before each release, each batch and each write."""
        return self._session.may_act(self._clock.monotonic_ms(), self._membership.breaks)

    @property
    def pause_ms(self) -> int:
        """How long until the next renewal should be sent."""
        return max(0, self._session.trust.renew_at_ms - self._clock.monotonic_ms())

    async def renew(self, mine: Collection[int]) -> set[int]:
        """Renew. Return those of my shards that turn out not to be mine any more; `LeaseLost` if none is."""
        asked, breaks, sent_ms = set(mine), self._membership.breaks, self._clock.monotonic_ms()
        self._session = self._session.seen(sent_ms, breaks)
        try:
            await self._membership.renew()
            timeout_ms = self._membership.session_timeout_ms
            self._session = self._session.renewed(sent_ms, self._clock.monotonic_ms(), timeout_ms=timeout_ms)
            if self.may_act():
                return set()
            owners = await self._membership.owners()
        except CoordinatorUnavailable:
            return set()
        except LeaseLost:
            self._session = self._session.ended()
            raise
        self._session = self._session.confirmed(breaks, self._clock.monotonic_ms())
        return {shard for shard in asked if owners.get(shard) != self.member}

    async def moves(self, mine: Collection[int]) -> tuple[list[int], list[int]]:
        """Shards to take, and shards to hand over, by the balance over the members that have settled.

        What is being acquired or released meanwhile is left out."""
        now_ms = self._clock.monotonic_ms()
        alive, owners = await asyncio.gather(self._membership.members(), self._membership.owners())
        self._sightings = self._sightings.look(alive, now_ms, settle_ms=self._settle_ms)
        counted = self._sightings.counted(now_ms) | {self.member}
        wanted = assign(SHARDS, counted)
        self.expects = any(m == self.member != owners.get(s, self.member) for s, m in wanted.items())
        change = changes(self.member, wanted, owners, alive)
        return [s for s in change.take if s not in mine and s not in self._changing], [
            s for s in change.give if s in mine
        ]

    async def acquire(self, shard: int, above: int = 0) -> int | None:
        async with self._change(shard):
            return await self._membership.acquire(shard, above)

    async def release(self, shard: int) -> None:
        async with self._change(shard):
            await self._membership.release(shard)

    @asynccontextmanager
    async def _change(self, shard: int) -> AsyncIterator[None]:
        assert shard not in self._changing, shard
        self._changing.add(shard)
        try:
            yield
        finally:
            self._changing.discard(shard)

    async def withdraw(self) -> None:
        """Let the others count without me, if it can be said: what I release from now on is for them."""
        with suppress(CoordinatorUnavailable, LeaseLost):
            await self._membership.withdraw()

    async def leave(self) -> None:
        self._session = self._session.ended()
        await self._membership.leave()
