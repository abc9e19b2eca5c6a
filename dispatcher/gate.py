"""Which of the due tasks goes out next, and why does the rest wait?

The gate stands between wheel and broker. What is due is offered to it; a release round takes from it by bands of
priority, 1 to 3, served 7 : 2 : 1 while all have work (never strictly), each in the order of the due times and, for
equal ones, of arrival. A task that waits moves up a band every 30 s, so a low one waits a bounded time under any
load; what it waits through a pause does not count. A queue that is paused, or whose topic cannot take anything now,
keeps its tasks here, and each can say so.

Pure: `now_ms` is an argument. The bands are served by smooth weighted round robin (as nginx does it: raise every
band that has work by its weight, serve the highest, lower it by the sum), so the shares hold over any ten releases.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush

from .due import Due

BANDS = (1, 2, 3)
WEIGHTS = {1: 7, 2: 2, 3: 1}
AGING_MS = 30_000


class _Lane:
    """One queue's waiting tasks of one priority, in the order of (due time, arrival)."""

    def __init__(self) -> None:
        self._sorted: deque[tuple[int, int, int, Due]] = deque()
        self._astray: list[tuple[int, int, int, Due]] = []

    def put(self, entry: tuple[int, int, int, Due]) -> None:
        """Mostly they come in order; one that does not goes to a heap beside."""
        if not self._sorted or self._sorted[-1] <= entry:
            self._sorted.append(entry)
        else:
            heappush(self._astray, entry)

    def head(self) -> tuple[int, int, int, Due] | None:
        while self._sorted and not self._sorted[0][3].live:
            self._sorted.popleft()
        while self._astray and not self._astray[0][3].live:
            heappop(self._astray)
        if self._astray and (not self._sorted or self._astray[0] < self._sorted[0]):
            return self._astray[0]
        return self._sorted[0] if self._sorted else None

    def pop(self) -> Due:
        if self._astray and (not self._sorted or self._astray[0] < self._sorted[0]):
            return heappop(self._astray)[3]
        return self._sorted.popleft()[3]

    def __len__(self) -> int:
        return len(self._sorted) + len(self._astray)


class Gate:
    """The gate of one dispatcher, over all of its shards."""

    def __init__(self, aging_ms: int = AGING_MS) -> None:
        self._aging_ms = aging_ms
        self._lanes: dict[tuple[str, int], _Lane] = {}
        self._credit = dict.fromkeys(BANDS, 0)
        self._holds: dict[str, tuple[str, int]] = {}
        self._paused_ms: dict[str, int] = {}
        self._arrivals = 0

    def offer(self, dues: Iterable[Due], now_ms: int) -> None:
        """Take in what is due. The wait of each is counted from now, whatever its due time."""
        for due in dues:
            self._arrivals += 1
            queue = due.queue
            lane = self._lanes.setdefault((queue, due.priority), _Lane())
            lane.put((due.due_ms, self._arrivals, now_ms - self._paused_until(queue, now_ms), due))

    def release(self, now_ms: int, limit: int) -> list[Due]:
        """Let up to `limit` go, in the order in which they are to be published."""
        released: list[Due] = []
        while len(released) < limit:
            bands = self._bands(now_ms)
            if not bands:
                break
            if len(bands) == 1:
                (lanes,) = bands.values()
                released += self._run(lanes, limit - len(released))
            else:
                released.append(self._earliest(bands[self._serve(bands)]).pop())
        return released

    def hold(self, queue: str, reason: str, now_ms: int) -> None:
        """Keep a queue's tasks here until `resume`: it is paused, or its topic takes nothing."""
        self._holds.setdefault(queue, (reason, now_ms))

    def resume(self, queue: str, now_ms: int) -> None:
        if hold := self._holds.pop(queue, None):
            self._paused_ms[queue] = self._paused_ms.get(queue, 0) + now_ms - hold[1]

    def reasons(self) -> dict[str, tuple[str, int]]:
        """Why tasks wait: queue → (reason, how many). What waits without a reason is only waiting for its turn."""
        waiting: dict[str, int] = {}
        for (queue, _), lane in self._lanes.items():
            waiting[queue] = waiting.get(queue, 0) + len(lane)
        return {q: (self._holds[q][0] if q in self._holds else "turn", n) for q, n in waiting.items() if n}

    def ready(self) -> bool:
        """Would a release let anything go?"""
        return any(lane.head() is not None for (queue, _), lane in self._lanes.items() if queue not in self._holds)

    def _paused_until(self, queue: str, now_ms: int) -> int:
        """How long a queue has been paused in all, the present pause included."""
        hold = self._holds.get(queue)
        return self._paused_ms.get(queue, 0) + (now_ms - hold[1] if hold else 0)

    def _bands(self, now_ms: int) -> dict[int, list[_Lane]]:
        """The lanes that may be served, by the band in which their head stands by now."""
        bands: dict[int, list[_Lane]] = {}
        for (queue, priority), lane in self._lanes.items():
            if queue not in self._holds and (head := lane.head()):
                waited_ms = now_ms - self._paused_until(queue, now_ms) - head[2]
                bands.setdefault(max(1, priority - waited_ms // self._aging_ms), []).append(lane)
        return bands

    def _serve(self, bands: Iterable[int]) -> int:
        """Smooth weighted round robin over the bands that have work."""
        present = sorted(bands)
        for band in present:
            self._credit[band] += WEIGHTS[band]
        best = max(present, key=lambda band: (self._credit[band], -band))
        self._credit[best] -= sum(WEIGHTS[band] for band in present)
        return best

    @staticmethod
    def _earliest(lanes: list[_Lane]) -> _Lane:
        return min(lanes, key=lambda lane: (lane.head() or (1 << 62, 0))[:2])

    def _run(self, lanes: list[_Lane], limit: int) -> list[Due]:
        """Only one band has work: no shares to keep. A lane alone in it is taken without looking at the others."""
        if len(lanes) > 1:
            return [self._earliest(lanes).pop()]
        lane = lanes[0]
        released: list[Due] = []
        while len(released) < limit and lane.head() is not None:
            released.append(lane.pop())
        return released
