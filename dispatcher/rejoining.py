"""How does a dispatcher process stay in the fleet when its session ends?

A session that is over is over for good (see `coordinator.port`): whatever was owned in it is somebody else's by now. So
each run of a `Dispatcher` is one session; when it ends by itself, another is made, with a member id of its own.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from ..coordinator import CoordinatorUnavailable, LeaseLost
from .dispatcher import Dispatcher

log = structlog.get_logger("minutewheel.dispatcher")

PAUSE_S = 1.0


class Rejoining:
    """Dispatchers one after the other, until `stop`. `make` makes each, with a new member id."""

    def __init__(self, make: Callable[[], Dispatcher]) -> None:
        self._make = make
        self._stopping = asyncio.Event()
        self.dispatcher: Dispatcher | None = None

    def stop(self) -> None:
        """Hand all shards over and end. Safe to call again."""
        self._stopping.set()
        if self.dispatcher is not None:
            self.dispatcher.stop()

    async def run(self) -> None:
        """Serve until `stop`; what is not the coordinator's doing is raised."""
        while not self._stopping.is_set():
            self.dispatcher = self._make()
            try:
                await self.dispatcher.run()
            except (CoordinatorUnavailable, LeaseLost) as error:
                log.warning("not joined", error=str(error))
            if not self._stopping.is_set():
                await self._pause()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE_S):
                await self._stopping.wait()
