"""How does an ended attempt leave the worker, so that a crash at any point loses neither the run nor its outcome?

- *Done*: first the finish goes into the ledger, then the outcome to the broker. A crash between the two leaves a
  finished filing whose record is delivered again; it is not run again, and its outcome is produced again.
- *Anything else*: first the outcome, then the finish, for the ledger says only that a filing has run, not how it went.
  A crash between the two starts the same filing once more; its second outcome counts for nothing, for by then the
  task has another filing or an end. That start is one beyond the maximum at worst.

Only then may the offset be committed. What ends at about the same time goes together: one finish a place, one
produce for all. What fails is tried again for itself and holds up nothing else.
"""

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from ..broker.due import Delivered
from ..broker.errors import BrokerError, Unpublishable
from ..broker.outcome import Outcome, outcome_message
from ..broker.port import Broker
from ..broker.wire import Topics
from ..store.errors import StoreError
from ..store.port import Ledger
from .again import pause_ms
from .claims import Place, ledger_place
from .clock import Clock

BATCH_MAX = 1_000


class _Ended:
    """An attempt on its way out."""

    def __init__(self, delivered: Delivered, outcome: Outcome) -> None:
        self.delivered = delivered
        self.place = ledger_place(delivered)
        self.outcome = outcome
        self.finished = False
        self.acknowledged = False
        self.left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def finishes_first(self) -> bool:
        return self.outcome.kind == "done"

    @property
    def may_be_told(self) -> bool:
        return not self.acknowledged and (self.finished or not self.finishes_first)


class Settling:
    """The way out of one worker. `run` does the work while `settle` is awaited."""

    def __init__(self, broker: Broker, ledger: Ledger, topics: Topics, clock: Clock) -> None:
        self._broker = broker
        self._ledger = ledger
        self._topics = topics
        self._clock = clock
        self._waiting: asyncio.Queue[_Ended] = asyncio.Queue()

    async def settle(self, delivered: Delivered, outcome: Outcome) -> None:
        """Return when the ledger has the finish and the broker the outcome."""
        ended = _Ended(delivered, outcome)
        self._waiting.put_nowait(ended)
        await ended.left

    async def run(self) -> None:
        """Work until cancelled."""
        failures = 0
        while True:
            batch = [await self._waiting.get()]
            while len(batch) < BATCH_MAX and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            left = await self._turn([ended for ended in batch if not ended.left.cancelled()])
            for ended in left:
                self._waiting.put_nowait(ended)
            failures = failures + 1 if left else 0
            if left:
                await self._clock.sleep_ms(pause_ms(failures))

    async def _turn(self, batch: list[_Ended]) -> list[_Ended]:
        """One try for each. Return those that are not through."""
        await self._finish(ended for ended in batch if ended.finishes_first and not ended.finished)
        await self._produce([ended for ended in batch if ended.may_be_told])
        await self._finish(ended for ended in batch if ended.acknowledged and not ended.finished)
        for ended in batch:
            if ended.finished and ended.acknowledged and not ended.left.done():
                ended.left.set_result(None)
        return [ended for ended in batch if not ended.left.done()]

    async def _produce(self, batch: list[_Ended]) -> None:
        if not batch:
            return
        messages = [outcome_message(self._topics, ended.outcome) for ended in batch]
        try:
            answers = await self._broker.produce(messages)
        except BrokerError:
            return  # any of them may stand in the log; to say it again is the same
        for ended, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Unpublishable):
                ended.outcome = _lean(ended.delivered, ended.outcome)
            ended.acknowledged = not isinstance(answer, Exception)

    async def _finish(self, batch: Iterable[_Ended]) -> None:
        by_place: dict[Place, list[_Ended]] = {}
        for ended in batch:
            by_place.setdefault(ended.place, []).append(ended)
        async with asyncio.TaskGroup() as group:
            for place, some in by_place.items():
                group.create_task(self._finish_place(place, some))

    async def _finish_place(self, place: Place, batch: list[_Ended]) -> None:
        try:
            await self._ledger.finish(place, [ended.outcome.filing for ended in batch])
        except StoreError:
            return  # it may have landed; to finish again is the same
        for ended in batch:
            ended.finished = True


def _lean(delivered: Delivered, outcome: Outcome) -> Outcome:
    """The outcome without the delivered record, whose place it names instead: for one that is too large to send."""
    place = delivered.topic, delivered.partition, delivered.offset
    return replace(outcome, headers=(), payload=None, due_at=None if outcome.kind == "done" else place)
