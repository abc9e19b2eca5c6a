"""Who ends a session whose event loop stands still, when the loop itself cannot?

A client of ZooKeeper keeps its session alive from a thread of its own. So a process whose event loop hangs, or whose
renewals have stopped for another reason, would keep its shards for ever: nothing is dispatched, and nobody may take
over. The watchdog is one more thread. The loop *beats* at every renewal that it sends; when the last beat is a whole
session timeout old, the watchdog ends the session, just as the coordinator would if the process were dead.

Why so late, when trust ends at 0.6 of it? Because then nothing is taken from anyone who may still act: trust counts
from the sending of a renewal, which is no later than the last beat. And the time in between is the margin that others
rely on (see `lease`): what was handed to the producer in the last trusted moment is still under way.
"""

import threading
from collections.abc import Callable

LOOK_MS = 1_000
"""The longest pause between two looks: a timeout that was granted anew counts from then on."""


def left_ms(beat_ms: int, now_ms: int, limit_ms: int) -> int:
    """How much longer the loop may stand still: 0 when it has done so for `limit_ms` since the last beat."""
    return max(0, beat_ms + limit_ms - now_ms)


class Watchdog:
    """Calls `on_stall`, once, in its own thread, when no beat has come for `limit_ms()`. It watches until `stop`.

    `monotonic_ms` must be the clock by which the leases are trusted. A process that was frozen and thawed finds its
    last beat too old, and ends its session as well: it has been as good as dead.
    """

    def __init__(
        self, limit_ms: Callable[[], int], monotonic_ms: Callable[[], int], on_stall: Callable[[], None]
    ) -> None:
        self._limit_ms = limit_ms
        self._monotonic_ms = monotonic_ms
        self._on_stall = on_stall
        self._stopped = threading.Event()
        self._beat_ms = monotonic_ms()
        threading.Thread(target=self._watch, name="minutewheel-watchdog", daemon=True).start()

    def beat(self) -> None:
        """The loop is alive. To be called from nowhere else."""
        self._beat_ms = self._monotonic_ms()

    def stop(self) -> None:
        """Watch no more. Returns at once; safe to call again, from any thread."""
        self._stopped.set()

    def _watch(self) -> None:
        while left := left_ms(self._beat_ms, self._monotonic_ms(), self._limit_ms()):
            if self._stopped.wait(min(left, LOOK_MS) / 1_000):
                return
        self._on_stall()
