"""How do many who ask at about the same time for the bounds of one topic's partitions share one look?

A dispatcher that takes many shards at once asks for each of them. A look that is under way is of before the question,
so whoever comes meanwhile waits for the next one, which serves all of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from .errors import BrokerError
from .port import Bounds

Look = Callable[[str, Sequence[int]], Awaitable[list[Bounds]]]


class _Next:
    """A look that has not begun."""

    def __init__(self) -> None:
        self.partitions: set[int] = set()
        self.answer: asyncio.Future[dict[int, Bounds]]


class SharedLooks:
    """`look` is how the bounds of some partitions of a topic are found. For one event loop."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._next: dict[str, _Next] = {}
        self._turns: dict[str, asyncio.Lock] = {}

    async def bounds(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        """As they were at some time after the call. Who asks for what is not there spoils it for nobody else."""
        one = self._next.get(topic)
        if one is None:
            one = self._next[topic] = _Next()
            one.answer = asyncio.ensure_future(self._begin(topic, one))
            one.answer.add_done_callback(_heard)
        one.partitions.update(partitions)
        try:
            found = await asyncio.shield(one.answer)
        except BrokerError:
            if one.partitions == set(partitions):
                raise
            return await self._look(topic, partitions)
        return [found[partition] for partition in partitions]

    async def _begin(self, topic: str, one: _Next) -> dict[int, Bounds]:
        async with self._turns.setdefault(topic, asyncio.Lock()):
            del self._next[topic]
            asked = sorted(one.partitions)
            return dict(zip(asked, await self._look(topic, asked), strict=True))


def _heard(answer: "asyncio.Future[dict[int, Bounds]]") -> None:
    """An error that nobody waits for any more is no news."""
    if not answer.cancelled():
        answer.exception()
