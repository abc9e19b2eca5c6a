"""How long does a command that only looks put up with services that stumble?

Such a command makes hundreds of reads, and one that fails would be its end; reading changes nothing, so it is asked
again, after longer and longer pauses. What fails for good (no such tables, a newer schema) is not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ..broker.errors import BrokerError
from ..coordinator.errors import CoordinatorUnavailable
from ..store.errors import NotApplied
from ..store.minutes import Reads
from ..store.progress import Closing, Marks, Progress
from ..store.task import BucketRow

PAUSES_S = (0.25, 0.5, 1.0, 2.0, 4.0)
T = TypeVar("T")


async def patiently(ask: Callable[[], Awaitable[T]], pauses_s: Sequence[float] = PAUSES_S) -> T:
    """The answer to a question that changes nothing. After the last pause, what it raises is raised."""
    for pause_s in pauses_s:
        try:
            return await ask()
        except (NotApplied, BrokerError, CoordinatorUnavailable):
            await asyncio.sleep(pause_s)
    return await ask()


class PatientReads(Reads):
    """The reads of a store, each asked patiently."""

    def __init__(self, reads: Reads, pauses_s: Sequence[float] = PAUSES_S) -> None:
        self._reads = reads
        self._pauses_s = pauses_s

    async def progress(self, shard: int, marks_up_to: int) -> Progress:
        return await patiently(lambda: self._reads.progress(shard, marks_up_to), self._pauses_s)

    async def marks(self, shard: int, minutes: list[int]) -> dict[int, Marks]:
        return await patiently(lambda: self._reads.marks(shard, minutes), self._pauses_s)

    async def page(self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        return await patiently(lambda: self._reads.page(shard, minute, piece, after, limit), self._pauses_s)

    async def closing(self, shard: int, minute: int) -> Closing | None:
        return await patiently(lambda: self._reads.closing(shard, minute), self._pauses_s)
