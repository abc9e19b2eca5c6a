"""Which filings of the shard are in memory, and where there: waiting in the wheel, held at the gate, or in flight?

All at or below the *reach* (a minute) is in memory, or its minute is on the forgotten list; all above it is only in
the store. The reach moves before the loader reads (rule L), so that what is filed meanwhile is remembered directly.
A budget, shared by the shards of one dispatcher, bounds tasks and bytes.
"""

from array import array
from collections.abc import Iterable, Sequence

from ..store.port import Place
from ..store.task import BucketRow
from ..wheel import Wheel
from .due import Due

Point = tuple[int, int]
"""(due_ms, filing), as the filings of a minute stand in order."""
NEVER: Point = (1 << 62, 0)
"""Behind all of them."""


class Budget:
    """What the shards of one dispatcher may hold in memory together."""

    def __init__(self, tasks_max: int = 2_000_000, bytes_max: int = 1 << 30) -> None:
        self.tasks_max = tasks_max
        self.bytes_max = bytes_max
        self.tasks = 0
        self.bytes = 0

    def add(self, tasks: int, size: int) -> None:
        self.tasks += tasks
        self.bytes += size

    def full(self) -> bool:
        return self.tasks >= self.tasks_max or self.bytes >= self.bytes_max

    def roomy(self) -> bool:
        """Half empty: room for what was forgotten."""
        return self.tasks < self.tasks_max // 2 and self.bytes < self.bytes_max // 2


class Memory:
    """What one shard has in memory."""

    def __init__(self, shard: int, now_ms: int, reach: int, budget: Budget) -> None:
        self.shard = shard
        self.reach = reach
        self.forgotten: dict[int, Point] = {}
        self.wheel = Wheel(now_ms)
        self.held: dict[int, Due] = {}
        self.firing: dict[int, Due] = {}
        self.budget = budget
        self._counts: dict[int, int] = {}
        self._late: set[int] | None = None
        self._loading = -1

    def count(self, minute: int) -> int:
        """How many of a minute's filings are in memory, in whichever place."""
        return self._counts.get(minute, 0)

    def has(self, due_ms: int, filing: int) -> bool:
        return filing in self.held or filing in self.firing or self.wheel.contains(due_ms, filing)

    def loaded(self, minute: int) -> bool:
        """All of the minute is in memory, and no read of it is under way."""
        return minute <= self.reach and minute not in self.forgotten and minute != self._loading

    # Filling.

    def begin(self, minute: int) -> None:
        """The loader is about to read a minute, for the first time or again."""
        self.reach = max(self.reach, minute)
        self.forgotten.pop(minute, None)
        self._loading = minute
        self._late = set()

    def end(self, minute: int, *, forget: Point | None = None) -> None:
        """The loader is through with a minute, or leaves it to the store from a point on."""
        if forget:
            self.forget(minute, forget)
        self._loading = -1
        self._late = None

    def admit(self, minute: int, rows: Sequence[BucketRow], *, anew: bool) -> None:
        """Take in rows that count and are not marked. `anew`: part of the minute may be here already."""
        late = self._late or ()
        if anew:
            rows = [row for row in rows if not self.has(row.due_ms, row.filing)]
        elif late or self.held or self.firing:
            # What came late may have made room since, for what is due before it.
            held, firing = self.held, self.firing
            rows = [
                row
                for row in rows
                if (filing := row.filing) not in held
                and filing not in firing
                and not (filing in late and self.wheel.contains(row.due_ms, filing))
            ]
        if not rows:
            return
        records = [row.record for row in rows]
        dues, filings = array("q", [row.due_ms for row in rows]), array("q", [row.filing for row in rows])
        self.wheel.load(minute, dues, filings, records)
        self._count(minute, len(rows), sum(map(len, records)))

    def remember(self, row: BucketRow) -> None:
        """A filing was written: it goes into the wheel if it lies within the reach, and is not here already.

        Where the budget is used up, what is due last makes room, or this one is left to the store itself.
        """
        if row.minute > self.reach:
            return
        point = row.due_ms, row.filing
        if point >= self.forgotten.get(row.minute, NEVER) or self.has(*point):
            return
        if self.budget.full() and not self.make_room(row.minute, point):
            self.forget(row.minute, point)
            return
        self.wheel.add(row.minute, row.due_ms, row.filing, row.record)
        self._count(row.minute, 1, len(row.record))
        if row.minute == self._loading and self._late is not None:
            self._late.add(row.filing)

    def forget(self, minute: int, point: Point) -> None:
        """From this point on the minute is only in the store; all of it is read again."""
        self.forgotten[minute] = min(point, self.forgotten.get(minute, point))

    def last(self) -> int:
        """The latest minute of which anything waits in the wheel, or -1."""
        return max((minute for minute in self._counts if self.wheel.count(minute)), default=-1)

    def later(self, minute: int, point: Point) -> bool:
        """Does anything wait in the wheel that is due after this point of this minute?"""
        last = self.last()
        return last > minute or (last == minute and (self.wheel.last(minute) or point) > point)

    def make_room(self, minute: int, point: Point, *, reading: bool = False) -> bool:
        """Forget what is due last, if it is due after this point of this minute. Was there any?

        The loader, `reading` this minute up to this point, comes to what it forgets there.
        """
        last = self.last()
        if last < minute:
            return False
        after = point if last == minute else (-1, -1)
        size = self.wheel.size_bytes
        tasks = self.wheel.forget(last, after)
        if tasks:
            if not (reading and last == minute):
                self.forget(last, after)
            self._count(last, -tasks, self.wheel.size_bytes - size)
        return tasks > 0

    # Emptying.

    def remove(self, place: Place) -> None:
        """Take a filing out, if it waits in the wheel or at the gate."""
        minute, due_ms, filing = place
        if due := self.held.pop(filing, None):
            due.live = False
            self._count(minute, -1, -len(due.record))
        elif (record := self.wheel.remove(due_ms, filing)) is not None:
            self._count(minute, -1, -len(record))

    def take_due(self, now_ms: int, limit: int) -> list[Due]:
        """Move what is due from the wheel to the gate's side."""
        taken = [
            Due(self.shard, part.minute, due_ms, filing, record)
            for part in self.wheel.advance(now_ms, limit)
            for due_ms, filing, record in zip(part.dues, part.filings, part.records, strict=True)
        ]
        for due in taken:
            self.held[due.filing] = due
        return taken

    def release(self, dues: Iterable[Due]) -> None:
        """The gate let these go: they are in flight now."""
        for due in dues:
            self.firing[due.filing] = self.held.pop(due.filing)

    def put_back(self, dues: Iterable[Due], *, hold: bool) -> None:
        """These could not be published: they are held again, or left to the next owner."""
        for due in dues:
            due.doubtful = True
            self.held[due.filing] = self.firing.pop(due.filing)
        if not hold:
            self.withhold()

    def withhold(self) -> None:
        """The shard is handed over: what is at the gate stays there no longer, and the next owner loads it."""
        for due in self.held.values():
            due.live = False
            self._count(due.minute, -1, -len(due.record))
        self.held.clear()

    def fired(self, dues: Iterable[Due]) -> None:
        """These are published and acknowledged."""
        gone: dict[int, list[int]] = {}
        for due in dues:
            del self.firing[due.filing]
            gone.setdefault(due.minute, []).append(len(due.record))
        for minute, sizes in gone.items():
            self._count(minute, -len(sizes), -sum(sizes))

    def abandon(self) -> None:
        """The shard is lost: nothing of it may be released any more, and its part of the budget is free."""
        self.withhold()
        for due in self.firing.values():
            due.live = False  # in flight stays in flight, but does not come back to the gate
        in_flight = sum(len(due.record) for due in self.firing.values())
        self.budget.add(-sum(self._counts.values()), -self.wheel.size_bytes - in_flight)
        self._counts.clear()

    def _count(self, minute: int, tasks: int, size: int) -> None:
        self.budget.add(tasks, size)
        left = self._counts.get(minute, 0) + tasks
        if left:
            self._counts[minute] = left
        else:
            self._counts.pop(minute, None)
