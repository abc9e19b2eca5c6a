"""What does this worker hold in the ledger, and until when may it trust that?

A hold is trusted until the *sending* time of the last renewal that went well + its length, on the monotonic clock: a
slow answer or a pause can't stretch it, and a step of the wall clock doesn't matter. Past that, or when the ledger
says that another has it, the hold is lost: whoever runs under it is told at once.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from ..broker.due import Delivered
from ..store.errors import StoreError, UnknownOutcome
from ..store.port import ClaimAnswer, Granted, Ledger
from .again import until_done
from .clock import Clock

Place = tuple[str, int, int]
"""Of a ledger's partition: (queue, shard, minute)."""
Spot = tuple[Place, int]
"""A filing in full: the numbers of two shards' filings may be equal."""


def ledger_place(delivered: Delivered) -> Place:
    return delivered.queue, delivered.shard, delivered.minute


class Hold:
    """One filing held; `on_lost` is called when it is lost."""

    def __init__(self, place: Place, filing: int, trusted_until_ms: int) -> None:
        self.place = place
        self.filing = filing
        self.trusted_until_ms = trusted_until_ms
        self.on_lost: Callable[[], None] = nothing

    @property
    def spot(self) -> Spot:
        return self.place, self.filing


class Claims:
    """The holds of one worker process. `holder` names it: a new name for each start, never the host's."""

    def __init__(self, ledger: Ledger, clock: Clock, holder: str, hold_ms: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._holder = holder
        self._hold_ms = hold_ms
        self._holds: dict[Spot, Hold] = {}

    async def claim(self, place: Place, filings: Sequence[int]) -> list[ClaimAnswer]:
        """Take these; those granted are held from now on."""
        answers, sent_ms = await until_done(self._clock, lambda: self._claim_once(place, filings))
        for answer in answers:
            if isinstance(answer, Granted):
                self._holds[place, answer.filing] = Hold(place, answer.filing, sent_ms + self._hold_ms)
        return answers

    async def _claim_once(self, place: Place, filings: Sequence[int]) -> tuple[list[ClaimAnswer], int]:
        """A claim that may have been done is taken back before the next try, or it would count two starts."""
        sent_ms, now_ms = self._clock.monotonic_ms(), self._clock.now_ms()
        try:
            answers = await self._ledger.claim(place, filings, self._holder, now_ms, now_ms + self._hold_ms)
        except UnknownOutcome:
            await until_done(self._clock, lambda: self._ledger.release(place, filings, self._holder, uncount=True))
            raise
        return answers, sent_ms

    def hold(self, spot: Spot) -> Hold | None:
        return self._holds.get(spot)

    def let_go(self, spot: Spot) -> None:
        """The hold is needed no more: stop renewing it."""
        self._holds.pop(spot, None)

    async def release(self, hold: Hold, *, uncount: bool) -> None:
        """Give a filing back before its time, so that another need not wait. One try: the hold runs out anyway."""
        self.let_go(hold.spot)
        try:
            await self._ledger.release(hold.place, [hold.filing], self._holder, uncount=uncount)
        except StoreError:
            return

    async def renew(self) -> None:
        """Renew all holds, and give up those that can't be trusted any more."""
        by_place: dict[Place, list[int]] = {}
        for hold in self._holds.values():
            by_place.setdefault(hold.place, []).append(hold.filing)
        async with asyncio.TaskGroup() as group:
            for place, filings in by_place.items():
                group.create_task(self._renew_place(place, filings))
        self._give_up(
            hold.spot for hold in list(self._holds.values()) if hold.trusted_until_ms <= self._clock.monotonic_ms()
        )

    async def _renew_place(self, place: Place, filings: list[int]) -> None:
        sent_ms = self._clock.monotonic_ms()
        try:
            kept = await self._ledger.renew(place, filings, self._holder, self._clock.now_ms() + self._hold_ms)
        except StoreError:
            return  # the holds last a while yet; the next turn asks again
        for filing in kept:
            if (hold := self._holds.get((place, filing))) is not None:
                hold.trusted_until_ms = sent_ms + self._hold_ms
        self._give_up((place, filing) for filing in set(filings).difference(kept))

    def _give_up(self, spots: Iterable[Spot]) -> None:
        for spot in spots:
            if (hold := self._holds.pop(spot, None)) is not None:
                hold.on_lost()


def nothing() -> None:
    """Nobody runs under this hold yet."""
