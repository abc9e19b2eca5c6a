"""What happens to a delivered record, from the claim to the point where its offset may be committed?

All of it in one place, per delivery: claim, start, end, settle; or park while another holds it. The runner decides
what is taken and when to stop; the ways of each delivery are here.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..broker.due import Delivered
from ..broker.outcome import outcome_of
from ..store.port import ClaimAnswer, Finished, Held, Ledger
from .app import App, Handler
from .attempt import DONE, Ending, before_start, make_context, perform, prepare, timeout_of
from .claims import Claims, Hold, Place, Spot, ledger_place, nothing
from .clock import Clock
from .limits import WorkerLimits
from .once import first_time, number_of, place_of
from .settling import Settling
from .span import Cut, Span
from .threads import Threads

SHORTEST_PARK_MS = 20


class Delivery:
    """One delivered record on its way. `left` tells its repeats, if any come meanwhile, whether it was settled."""

    def __init__(self, delivered: Delivered) -> None:
        self.delivered = delivered
        self.left: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def partition(self) -> tuple[str, int]:
        return self.delivered.topic, self.delivered.partition

    @property
    def place(self) -> Place:
        return ledger_place(self.delivered)

    @property
    def filing(self) -> int:
        return self.delivered.filing

    @property
    def spot(self) -> Spot:
        return self.place, self.filing


class Stopped(Exception):
    """The worker stops; this delivery is another's."""


class Deliveries:
    """Everything in hand. `still_ours` says whether a partition is still this member's."""

    def __init__(
        self,
        app: App,
        ledger: Ledger,
        claims: Claims,
        settling: Settling,
        *,
        clock: Clock,
        limits: WorkerLimits,
        holder: str,
        still_ours: Callable[[tuple[str, int]], bool],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.in_hand = 0
        self.parked = 0
        self.freed = asyncio.Event()
        self._app = app
        self._ledger = ledger
        self._claims = claims
        self._settling = settling
        self._clock = clock
        self._holder = holder
        self._still_ours = still_ours
        self._recheck_ms = limits.renew_ms
        self._threads = Threads(limits.threads)
        self._present: dict[Spot, Delivery] = {}
        self._waiting: set[Span] = set()
        self._running: set[Span] = set()
        self._stopping = False
        self._once_calls = 0

    def take(self, deliveries: Sequence[Delivery]) -> tuple[list[list[Delivery]], list[Delivery]]:
        """Count these in. Return them grouped by place, for one claim each, and apart those whose filing is in hand."""
        groups: dict[Place, list[Delivery]] = {}
        repeats: list[Delivery] = []
        self.in_hand += len(deliveries)
        for delivery in deliveries:
            if delivery.spot in self._present:
                repeats.append(delivery)
            else:
                self._present[delivery.spot] = delivery
                groups.setdefault(delivery.place, []).append(delivery)
        return [*groups.values()], repeats

    async def claim(self, group: Sequence[Delivery]) -> list[ClaimAnswer]:
        return await self._claims.claim(group[0].place, [delivery.filing for delivery in group])

    async def see_through(self, delivery: Delivery, answer: ClaimAnswer) -> bool:
        """From the claim's answer on. True when its offset may be committed; false when it is another's to do."""
        settled = False
        try:
            while not (settled := await self._advance(delivery, answer)):
                answer = await self._park(delivery, answer)
        except Stopped:
            pass
        finally:
            self._gone()
            del self._present[delivery.spot]
            delivery.left.set_result(settled)
        return settled

    async def repeat(self, delivery: Delivery) -> bool:
        """See a record through whose filing was in hand when it came: what settles the first settles it."""
        while (first := self._present.get(delivery.spot)) is not None:
            with self._off_hand():
                settled = await asyncio.shield(first.left)
            if settled:
                self._gone()
                return True
        self._present[delivery.spot] = delivery
        (answer,) = await self.claim([delivery])
        return await self.see_through(delivery, answer)

    def stop_waiting(self) -> None:
        """Start nothing more, and let go what waits to be started."""
        self._stopping = True
        for span in list(self._waiting):
            span.cut_short(Cut.STOPPING)

    def stop_running(self) -> None:
        for span in list(self._running):
            span.cut_short(Cut.STOPPING)

    async def _advance(self, delivery: Delivery, answer: ClaimAnswer) -> bool:
        """Go as far as the ledger's answer leads; true when it is settled."""
        if isinstance(answer, Held):
            return False
        if isinstance(answer, Finished):
            self.counts["finished_before"] += 1
            await self._settle(delivery, DONE, delivery.delivered.task.starts)
            return True
        hold = self._claims.hold(delivery.spot)
        if hold is None:
            return False  # lost already
        starts = delivery.delivered.task.starts + answer.starts
        ending = before_start(delivery.delivered, starts, self._clock.now_ms())
        if ending is not None:
            await self._settle(delivery, ending, starts - 1)
            return True
        return await self._start(delivery, hold, starts)

    async def _start(self, delivery: Delivery, hold: Hold, starts: int) -> bool:
        prepared = prepare(self._app, delivery.delivered)
        if isinstance(prepared, Ending):
            await self._settle(delivery, prepared, starts)
            return True
        handler, payload = prepared
        if (cut := await self._wait_turn(handler, hold)) is not None:
            if cut is Cut.STOPPING:
                await self._claims.release(hold, uncount=True)
                raise Stopped
            return False
        ending = await self._run(delivery, hold, starts, handler, payload)
        if ending is Cut.STOPPING:
            await self._interrupted(hold, handler)
        if not isinstance(ending, Ending) or (ending.kind != "done" and self._claims.hold(hold.spot) is None):
            return False  # another may run it by now: its end is the one to tell
        await self._settle(delivery, ending, starts - (ending.kind == "snoozed"))
        return True

    async def _wait_turn(self, handler: Handler[Any], hold: Hold) -> Cut | None:
        """A plain handler takes a place among the threads. Return why it may not start, if it may not."""
        if not handler.waits:
            cut = await self._cut_of(self._threads.wait_free(), hold)
            if cut is not None:
                return cut
            if self._stopping:
                self._threads.give_back()
        return Cut.STOPPING if self._stopping else None

    async def _cut_of(self, waiting: Awaitable[None], hold: Hold | None = None) -> Cut | None:
        """Wait, unless the worker stops or the hold is lost before."""
        span = Span(0)
        with self._covered(span, hold, self._waiting):
            async with span:
                await waiting
        return span.cut

    async def _run(
        self, delivery: Delivery, hold: Hold, starts: int, handler: Handler[Any], payload: Any
    ) -> Ending | Cut:
        delivered = delivery.delivered
        span = Span(timeout_of(handler, delivered))
        context = make_context(
            handler,
            delivered=delivered,
            starts=starts,
            now_ms=self._clock.now_ms(),
            span=span,
            once=lambda key: self._once(delivered, key),
        )
        self.counts["started"] += 1
        with self._covered(span, hold, self._running):
            return await perform(handler, payload, context, span, self._threads)

    async def _once(self, delivered: Delivered, key: str) -> bool:
        self._once_calls += 1
        place = place_of(delivered.queue, delivered.shard, delivered.origin)
        number = number_of(delivered.idempotency_key, key)
        return await first_time(self._ledger, self._clock, f"{self._holder}#{self._once_calls}", place, number)

    async def _interrupted(self, hold: Hold, handler: Handler[Any]) -> None:
        """Its start counts. A thread may still run: its hold is left to run out, for this process ends before that."""
        if handler.waits:
            await self._claims.release(hold, uncount=False)
        raise Stopped

    async def _settle(self, delivery: Delivery, ending: Ending, starts: int) -> None:
        outcome = outcome_of(
            delivery.delivered,
            ending.kind,
            starts=starts,
            reason=ending.reason,
            retryable=ending.retryable,
            delay_ms=ending.delay_ms,
        )
        await self._settling.settle(delivery.delivered, outcome)
        self._claims.let_go(delivery.spot)
        self.counts[ending.kind] += 1

    async def _park(self, delivery: Delivery, answer: ClaimAnswer) -> ClaimAnswer:
        """Wait until the other's hold runs out or a while has passed, and claim again."""
        now_ms = self._clock.now_ms()
        until_ms = answer.until_ms if isinstance(answer, Held) else now_ms
        pause_ms = max(SHORTEST_PARK_MS, min(self._recheck_ms, until_ms + 1 - now_ms))
        with self._off_hand():
            await self._cut_of(self._clock.sleep_ms(pause_ms))
        if self._stopping or not self._still_ours(delivery.partition):
            raise Stopped
        (answer,) = await self.claim([delivery])
        return answer

    @contextmanager
    def _covered(self, span: Span, hold: Hold | None, spans: set[Span]) -> Iterator[None]:
        """Have the span cut when its hold is lost, or when the worker stops."""
        spans.add(span)
        if hold is not None:
            hold.on_lost = lambda: span.cut_short(Cut.HOLD_LOST)
        try:
            yield
        finally:
            spans.remove(span)
            if hold is not None:
                hold.on_lost = nothing

    @contextmanager
    def _off_hand(self) -> Iterator[None]:
        """Make room for others meanwhile."""
        self.in_hand -= 1
        self.parked += 1
        self.freed.set()
        try:
            yield
        finally:
            self.in_hand += 1
            self.parked -= 1

    def _gone(self) -> None:
        self.in_hand -= 1
        self.freed.set()
