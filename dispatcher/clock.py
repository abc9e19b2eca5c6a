"""What time is it, for those parts that may ask?"""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time says when a task is due, monotonic time how long a lease is trusted."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; it never goes back, and counts while the machine sleeps where it can."""


class SystemClock:
    """This machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.clock_gettime_ns(_SUSPEND_AWARE) // 1_000_000


_SUSPEND_AWARE = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
