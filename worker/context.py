"""What does a handler learn of the attempt that it runs, and what can it ask for meanwhile?

`AsyncContext` is for `async def`, `Context` for plain `def`, which runs in a thread of its own: the same names, but
what waits is awaited in the one and blocks in the other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..broker.due import Delivered
from .errors import HoldLost, TimeoutPassed
from .span import Cut, Span

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Once = Callable[[str], Awaitable[bool]]


class _Attempt:
    """One attempt of a task, as its handler sees it.

    `attempt` is 1 for the first filing of this version of the task, and rises with each retry; `starts` counts all
    starts, this one included, also those whose worker was lost. `deadline_ms` is when the timeout passes, if nothing
    extends it; None without one. `idempotency_key` is the same over all attempts of this version of the task.
    """

    def __init__(self, delivered: Delivered, starts: int, deadline_ms: int | None, span: Span, once: Once) -> None:
        self.key = delivered.key
        self.tenant = delivered.tenant
        self.id = delivered.id
        self.queue = delivered.queue
        self.due_ms = delivered.due_ms
        self.attempt = delivered.attempt
        self.starts = starts
        self.max_attempts = delivered.task.max_attempts
        self.deadline_ms = deadline_ms
        self.idempotency_key = delivered.idempotency_key
        self.headers = dict(delivered.headers)
        self._span = span
        self._once = once

    def heartbeat(self) -> None:
        """Say that the work goes on: the timeout starts anew. Raise when it should stop instead.

        `HoldLost` and `TimeoutPassed` say that nobody waits for this attempt any more. (The hold in the ledger is
        renewed without it.)
        """
        if self._span.ending is Cut.TIMEOUT:
            raise TimeoutPassed(f"{self.key} took longer than its timeout")
        if self._span.ending is not None:
            raise HoldLost(f"{self.key} is another worker's now")
        self._span.extend()

    @property
    def log(self) -> "FilteringBoundLogger":
        """A logger that says which attempt of which task it is."""
        import structlog

        logger: FilteringBoundLogger = structlog.get_logger().bind(
            key=self.key, queue=self.queue, attempt=self.attempt, starts=self.starts
        )
        return logger


class AsyncContext(_Attempt):
    """The context of an `async def` handler."""

    async def once(self, key: str) -> bool:
        """True at most once ever for this version of the task and this key: see `worker.once` for what that means."""
        return await self._once(key)


class Context(_Attempt):
    """The context of a plain `def` handler; to be used from its own thread."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._loop = asyncio.get_running_loop()

    def once(self, key: str) -> bool:
        """True at most once ever for this version of the task and this key: see `worker.once` for what that means."""
        return asyncio.run_coroutine_threadsafe(_coroutine(self._once(key)), self._loop).result()


async def _coroutine(awaitable: Awaitable[bool]) -> bool:
    return await awaitable
