"""What time is it, and how does a worker wait? The one place in the package that asks the operating system."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A wall clock to compare with other machines', and a monotonic one to measure with; both in ms."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    async def sleep_ms(self, ms: int) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def sleep_ms(self, ms: int) -> None:
        await asyncio.sleep(ms / 1_000)
