"""How does a worker know the time, and wait? The machine's clocks are those of the dispatcher."""

import asyncio
from typing import Protocol

from ..dispatcher import clock


class Clock(clock.Clock, Protocol):
    """A clock that one can also wait by."""

    async def sleep_ms(self, ms: int) -> None: ...


class SystemClock(clock.SystemClock):
    """This machine's clocks, and the event loop's sleep."""

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(ms / 1_000)
