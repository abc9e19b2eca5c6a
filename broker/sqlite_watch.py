"""Who waits for something to move in the broker's file, and who of them looks at it?

What this process writes itself wakes the waiting at once. What other processes write is found by looking, and one
looks for all: the first that waits. When it leaves, it wakes another, which waits again and so takes its place. There
is no task in the background, then: who waits pays, and where nobody waits, nothing is looked at.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

LOOK_MS = 10

Key = int | str
"""A log's id, or a team's name."""


class Watch:
    """The waiting ones of one event loop.

    `glance` says at once whether there may be something to see, `look` goes to see it and fills `moved` with the keys
    that moved; None there stands for all.
    """

    def __init__(
        self, glance: Callable[[], bool], look: Callable[[], Awaitable[None]], moved: deque[Key | None]
    ) -> None:
        self._glance = glance
        self._look = look
        self._moved = moved
        self._waiting: dict[Key, set[asyncio.Future[None]]] = {}
        self._looker: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """Wake those whose keys have moved."""
        while self._moved:
            key = self._moved.popleft()
            keys = list(self._waiting) if key is None else (key,)
            for each in keys:
                for waiter in self._waiting.get(each, ()):
                    _set(waiter)

    async def wait_moved(self, keys: Iterable[Key], wait_s: float) -> None:
        """Return when one of the keys moves, or after so long; sometimes sooner, so the caller looks what is new."""
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_s
        waiter: asyncio.Future[None] = loop.create_future()
        keys = tuple(keys)
        self._enter(keys, waiter)
        try:
            while not waiter.done() and (left := until - loop.time()) > 0:
                looks = self._looker is waiter
                await asyncio.wait((waiter,), timeout=min(left, LOOK_MS / 1000) if looks else left)
                if looks and not waiter.done() and self._glance():
                    await self._look()
                    self.wake()
        finally:
            self._leave(keys, waiter)

    def _enter(self, keys: tuple[Key, ...], waiter: asyncio.Future[None]) -> None:
        for key in keys:
            self._waiting.setdefault(key, set()).add(waiter)
        if self._looker is None:
            self._looker = waiter

    def _leave(self, keys: tuple[Key, ...], waiter: asyncio.Future[None]) -> None:
        for key in keys:
            waiting = self._waiting[key]
            waiting.discard(waiter)
            if not waiting:
                del self._waiting[key]
        if self._looker is waiter:
            self._looker = None
        if self._looker is None:
            # Also when it was woken to look and is cancelled instead.
            self._wake_one()

    def _wake_one(self) -> None:
        waiting = (waiter for waiters in self._waiting.values() for waiter in waiters if not waiter.done())
        if (waiter := next(waiting, None)) is not None:
            waiter.set_result(None)


def _set(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
