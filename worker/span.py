"""When must an attempt stop before it is done, and why?

A span covers one run of a handler. It ends by itself at its timeout, which a heartbeat starts anew, or when the runner
cuts it: the hold is lost, or the worker stops. The first reason stands.
"""

import asyncio
from enum import Enum, auto
from types import TracebackType


class Cut(Enum):
    """Why a span ended early."""

    TIMEOUT = auto()
    HOLD_LOST = auto()
    STOPPING = auto()


class Span:
    """An async context manager. After it, `cut` is why what ran in it was cut short, or None if it came to its end."""

    def __init__(self, timeout_ms: int) -> None:
        self.cut: Cut | None = None
        self.timeout_ms = timeout_ms
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(timeout_ms / 1_000 if timeout_ms else None)
        self._reason: Cut | None = None
        self._open = False

    @property
    def ending(self) -> Cut | None:
        """Why it is to stop, if it is. From any thread, also one that was left behind."""
        if self._reason is None and self._scope.expired():
            return Cut.TIMEOUT
        return self._reason

    def cut_short(self, reason: Cut) -> None:
        """Cancel what runs in it. From the loop's own thread."""
        if self._open and self.ending is None:
            self._reason = reason
            self._scope.reschedule(self._loop.time())

    def extend(self) -> None:
        """Start the timeout anew. From any thread."""
        if self.timeout_ms:
            self._loop.call_soon_threadsafe(self._extend)

    def _extend(self) -> None:
        if self._open and self.ending is None:
            self._scope.reschedule(self._loop.time() + self.timeout_ms / 1_000)

    async def __aenter__(self) -> None:
        await self._scope.__aenter__()
        self._open = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Swallow what a cut raised: the cancellation, or an error on the way out of it."""
        self._open = False
        try:
            await self._scope.__aexit__(kind, error, traceback)
        except TimeoutError:
            self.cut = self.ending
            return True
        if isinstance(error, Exception) and self.ending is not None:
            self.cut = self.ending
            return True
        return False
