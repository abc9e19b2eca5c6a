"""Which of the due tasks goes out next, and why does the rest wait?

The gate stands between wheel and broker. What is due is offered to it; a release round takes from it by bands of
priority, 1 to 3, served 7 : 2 : 1 while all have work (never strictly), each in the order of the due times and, for
equal ones, of arrival. A task that waits moves up a band every 30 s, so a low one waits a bounded time under any
load; what it waits through a pause does not count. A queue that is paused, or whose topic cannot take anything now,
keeps its tasks here, and each can say so. One that was let go and could not be published comes back to the place that
it had, with the wait that it had.

Pure: `now_ms` is an argument, and may step back. The bands are served by smooth weighted round robin (as nginx does
it: raise every band that has work by its weight, serve the highest, lower it by the sum), so the shares hold over any
ten releases. A round looks at each lane once, then only at the one that it took from.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from .due import Due, lane_of

BANDS = (1, 2, 3)
WEIGHTS = {1: 7, 2: 2, 3: 1}
AGING_MS = 30_000
DEAD_MIN = 1_000
"""A lane is freed of cancelled tasks when it has twice as many as lived in it last time, and this many more."""

_Waiting = tuple[int, int, Due]
"""(due time, arrival, task): no two arrivals are equal, so tasks are never compared."""


class _Lane:
    """One queue's waiting tasks of one priority, in the order of (due time, arrival)."""

    def __init__(self, queue: str, priority: int) -> None:
        self.queue = queue
        self.priority = priority
        self._sorted: deque[_Waiting] = deque()
        self._astray: list[_Waiting] = []
        self._size_max = DEAD_MIN

    def put(self, due: Due) -> None:
        """Mostly they come in order; one that does not goes to a heap beside."""
        waiting = due.due_ms, due.arrival, due
        in_order, astray = self._sorted, self._astray
        if not in_order or in_order[-1] < waiting:
            in_order.append(waiting)
        else:
            heappush(astray, waiting)
        if len(in_order) + len(astray) > self._size_max:
            self._bury()

    def head(self) -> _Waiting | None:
        """The first that lives."""
        while self._sorted and not self._sorted[0][2].live:
            self._sorted.popleft()
        while self._astray and not self._astray[0][2].live:
            heappop(self._astray)
        if self._astray and (not self._sorted or self._astray[0] < self._sorted[0]):
            return self._astray[0]
        return self._sorted[0] if self._sorted else None

    def pop(self) -> Due:
        """Take what `head` found."""
        if self._astray and (not self._sorted or self._astray[0] < self._sorted[0]):
            return heappop(self._astray)[2]
        return self._sorted.popleft()[2]

    def count(self) -> int:
        """How many live."""
        return sum(due.live for part in (self._sorted, self._astray) for *_, due in part)

    def _bury(self) -> None:
        self._sorted = deque(waiting for waiting in self._sorted if waiting[2].live)
        self._astray = [waiting for waiting in self._astray if waiting[2].live]
        heapify(self._astray)
        self._size_max = 2 * (len(self._sorted) + len(self._astray)) + DEAD_MIN


class _Hold(NamedTuple):
    """Why and since when a queue is kept."""

    reason: str
    since_ms: int


_Heads = list[tuple[int, int, _Lane]]
"""A heap of the lanes that stand in one band by now: (due time, arrival) of their heads, and themselves."""


class Gate:
    """The gate of one dispatcher, over all of its shards."""

    def __init__(self, aging_ms: int = AGING_MS) -> None:
        self._aging_ms = aging_ms
        self._lanes: dict[tuple[int, bytes], _Lane] = {}
        self._credit = dict.fromkeys(BANDS, 0)
        self._holds: dict[str, _Hold] = {}
        self._paused_ms: dict[str, int] = {}
        self._arrivals = 0

    def offer(self, dues: Iterable[Due], now_ms: int) -> None:
        """Take in what is due. The wait of each is counted from its first offer, whatever its due time."""
        active_ms: dict[str, int] = {}
        lanes = self._lanes
        for due in dues:
            name = lane_of(due.record)
            lane = lanes.get(name)
            if lane is None:
                lane = lanes[name] = _Lane(due.queue, due.priority)
            if not due.arrival:
                self._arrivals += 1
                due.arrival = self._arrivals
                since_ms = active_ms.get(lane.queue)
                if since_ms is None:
                    since_ms = active_ms[lane.queue] = self._active_ms(lane.queue, now_ms)
                due.since_ms = since_ms
            lane.put(due)

    def release(self, now_ms: int, limit: int) -> list[Due]:
        """Let up to `limit` go, in the order in which they are to be published."""
        released: list[Due] = []
        bands, active_ms = self._bands(now_ms)
        if len(bands) == 1:
            (heads,) = bands.values()
            if len(heads) == 1:
                return self._release_lane(heads[0][2], limit)
        while bands and len(released) < limit:
            band = self._serve(bands) if len(bands) > 1 else next(iter(bands))
            heads = bands[band]
            lane = heads[0][2]
            released.append(lane.pop())
            head = lane.head()
            if head is None:
                heappop(heads)
                del self._lanes[lane_of(released[-1].record)]
            else:
                to = self._band(lane.priority, active_ms[lane.queue] - head[2].since_ms)
                if to == band:
                    heapreplace(heads, (head[0], head[1], lane))
                else:
                    heappop(heads)
                    heappush(bands.setdefault(to, []), (head[0], head[1], lane))
            if not heads:
                del bands[band]
        return released

    def _release_lane(self, lane: _Lane, limit: int) -> list[Due]:
        """The same where only one lane has work: nobody else could have a turn, whatever ages meanwhile."""
        released: list[Due] = []
        while len(released) < limit:
            if lane.head() is None:
                del self._lanes[lane_of(released[-1].record)]
                break
            released.append(lane.pop())
        return released

    def hold(self, queue: str, reason: str, now_ms: int) -> None:
        """Keep a queue's tasks here until `resume`: it is paused, or its topic takes nothing."""
        self._holds.setdefault(queue, _Hold(reason, now_ms))

    def resume(self, queue: str, now_ms: int) -> None:
        if hold := self._holds.pop(queue, None):
            self._paused_ms[queue] = self._paused_ms.get(queue, 0) + max(0, now_ms - hold.since_ms)

    def reasons(self) -> dict[str, tuple[str, int]]:
        """Why tasks wait: queue → (reason, how many). What waits without a reason is only waiting for its turn."""
        waiting: dict[str, int] = {}
        for lane in self._lanes.values():
            waiting[lane.queue] = waiting.get(lane.queue, 0) + lane.count()
        return {q: (self._holds[q].reason if q in self._holds else "turn", n) for q, n in waiting.items() if n}

    def _active_ms(self, queue: str, now_ms: int) -> int:
        """The time, less what this queue has been paused for in all: it stands still through a pause."""
        hold = self._holds.get(queue)
        paused_ms = self._paused_ms.get(queue, 0) + (max(0, now_ms - hold.since_ms) if hold else 0)
        return now_ms - paused_ms

    def _band(self, priority: int, waited_ms: int) -> int:
        return max(1, priority - max(0, waited_ms) // self._aging_ms)

    def _bands(self, now_ms: int) -> tuple[dict[int, _Heads], dict[str, int]]:
        """The lanes that may be served, by the band in which their head stands by now; and each queue's own time."""
        bands: dict[int, _Heads] = {}
        active_ms: dict[str, int] = {}
        for name, lane in list(self._lanes.items()):
            head = lane.head()
            if head is None:
                del self._lanes[name]
            elif lane.queue not in self._holds:
                active_ms[lane.queue] = self._active_ms(lane.queue, now_ms)
                band = self._band(lane.priority, active_ms[lane.queue] - head[2].since_ms)
                bands.setdefault(band, []).append((head[0], head[1], lane))
        for heads in bands.values():
            heapify(heads)
        return bands, active_ms

    def _serve(self, bands: Iterable[int]) -> int:
        """Smooth weighted round robin over the bands that have work."""
        credit, best, total = self._credit, 0, 0
        for band in bands:
            weight = WEIGHTS[band]
            total += weight
            credit[band] += weight
            if not best or (credit[band], -band) > (credit[best], -best):
                best = band
        credit[best] -= total
        return best
