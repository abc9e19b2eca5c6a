"""How often is a call to the broker or the store tried again? Until it works, with growing pauses."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..broker.errors import BrokerError
from ..store.errors import StoreError
from .clock import Clock

FIRST_MS = 50
CAP_MS = 5_000

T = TypeVar("T")


def pause_ms(failures: int) -> int:
    """The pause after the `failures`-th failure in a row (1, 2, …)."""
    return min(CAP_MS, FIRST_MS << min(failures - 1, 16))


async def until_done(clock: Clock, call: Callable[[], Awaitable[T]]) -> T:
    """Await `call()` until it raises neither `BrokerError` nor `StoreError`: for calls that may be repeated."""
    failures = 0
    while True:
        try:
            return await call()
        except (BrokerError, StoreError):
            failures += 1
            await clock.sleep_ms(pause_ms(failures))
