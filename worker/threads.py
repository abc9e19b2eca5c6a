"""How do plain functions run beside the event loop, a bounded number at a time?

Each call gets a daemon thread of its own, which a pool can't give: a thread that can't be stopped (a handler past its
timeout) keeps its place in the count until it returns, but keeps neither the loop nor the process from ending.
"""

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import suppress
from threading import Thread


class Threads:
    """At most `limit` threads at a time."""

    def __init__(self, limit: int) -> None:
        self._free = asyncio.Semaphore(limit)

    async def wait_free(self) -> None:
        """Take a place; `run` gives it back when its function has returned, `give_back` if there is no run."""
        await self._free.acquire()

    def give_back(self) -> None:
        self._free.release()

    async def run(self, function: Callable[[], object]) -> None:
        """Run it in the place that was taken. If the waiting is cancelled, the thread runs on and is not heard."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[BaseException | None] = loop.create_future()

        def end(error: BaseException | None) -> None:
            self._free.release()
            if not ended.done():
                ended.set_result(error)

        def run() -> None:
            error = _error_of(function)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(end, error)

        Thread(target=contextvars.copy_context().run, args=(run,), daemon=True, name="minutewheel-handler").start()
        if (error := await ended) is not None:
            raise error


def _error_of(function: Callable[[], object]) -> BaseException | None:
    try:
        function()
    except BaseException as error:  # noqa: BLE001  # it is raised again where it is awaited
        return error
    return None
