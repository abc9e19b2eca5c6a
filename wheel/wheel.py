"""What is due now, and when is the next?

A hierarchical timing wheel over sorted runs. It never reads a clock: `now_ms` is an argument.

How it works
    Time is counted in ticks of 10 ms since 1970. A due time that lies between two ticks belongs to the later one: never
    early, and less than a tick late. The wheel stands at one tick. A run stands in one slot, that of its *earliest*
    waiting task; the rest of it comes along. When the wheel moves into a slot, each run there goes one or more levels
    down, until its head is due. What is due is then one slice, found by bisection, and the run goes to the slot of its
    new head. So a task is not touched between its load and its firing, however far off it is.

The levels, worked for a wheel that stands at tick c = 8,000 (1970-01-01 00:01:20), in base 64 as the digits (1, 61, 0)

    level  a slot is    the level ends   here the level covers       for instance
    0      10 ms        after 640 ms     ticks 8,001 to 8,063        8,010 = (1, 61, 10): slot 10
    1      640 ms       after 41 s       ticks 8,064 to 8,191        8,100 = (1, 62, 36): slot 62
    2      41 s         after 44 min     ticks 8,192 to 262,143      9,000 = (2, 12, 40): slot 2
    3      44 min       after 46 h       ticks 64³ to 64⁴ − 1        due in an hour: slot 1
    4      46 h         after 124 days   ticks 64⁴ to 64⁵ − 1        due in a week: slot 3
    5      124 days     after 21 years   ticks 64⁵ to 64⁶ − 1        due in a year: slot 2
    6      21 years     after 1,394 y.   ticks 64⁶ to 64⁷ − 1        due in 2100: slot 5
    7      1,394 years  after 89,000 y.  ticks 64⁷ to 64⁸ − 1        due in 9999: slot 5

    The level is that of the highest digit in which a tick differs from c, the slot is that digit. When c comes to
    8,064 = (1, 62, 0), slot 62 of level 1 is opened, and the run whose head is at 8,100 goes to level 0, slot 36. That
    run may be a page of 5,000 tasks over the next second: then it goes from slot to slot as its tasks fire, and the
    wheel moves one run a tick, not sixty tasks.

Single arrivals
    A late arrival or a retry goes into the page of its minute that encloses its due time: the page will pass there
    anyway, and one longer slice is cheaper than two. Where there is no such page, it joins the open run of its slot and
    minute. As soon as the wheel opens that slot, the run is closed and travels like a page.

What has come
    Runs whose head is at or before the wheel's tick are *ripe*. They are released in the order of their heads, each up
    to the next one's head, so that ticks never go back, however the runs overlap. Whatever a limit leaves stays ripe.

The clock may step. Forward: the wheel visits occupied slots only, so years cost no more than minutes. Back: the wheel
stays where it is and releases only what is due by the `now` it is told, so nothing is early and nothing fires twice.

Prior art: the hierarchical wheels of Varghese and Lauck; the arithmetic of levels and the masks of occupied slots are
tokio's. Those move every timeout by itself, at every level; runs are what a sorted store makes possible.
"""

from __future__ import annotations

from array import array
from bisect import insort
from operator import attrgetter
from typing import TYPE_CHECKING

from .index import RunIndex
from .level import LEVEL_COUNT, TICK_MAX, Level, level_for, slot_for
from .run import INTEGERS, Run, Slice, column

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN_LENGTH_MAX = 8_192
"""Longer pages are cut: dropping or inserting one task moves what stands behind it in its run."""

_RIPE = -1  # stands for a level in the key of an open run
_NEVER = TICK_MAX + 1
_by_tick = attrgetter("tick")


class Wheel:
    """The waiting tasks of one shard, by due time. A filing may stand in it once."""

    def __init__(self, now_ms: int, tick_ms: int = 10) -> None:
        assert now_ms >= 0
        assert tick_ms > 0
        self._tick_ms = tick_ms
        self._tick = now_ms // tick_ms
        self._levels = [Level(number) for number in range(LEVEL_COUNT)]
        self._next = _NEVER
        """The first tick of the first occupied slot: before it, nothing becomes ripe."""
        self._ripe: list[Run] = []
        self._index = RunIndex()
        self._open: dict[tuple[int, int, int], Run] = {}
        self._waiting: dict[int, int] = {}
        self._length = 0
        self._size_bytes = 0

    def __len__(self) -> int:
        return self._length

    @property
    def size_bytes(self) -> int:
        """The sum of the lengths of all waiting records."""
        return self._size_bytes

    def count(self, minute: int) -> int:
        """How many tasks of this minute wait."""
        return self._waiting.get(minute, 0)

    def last(self, minute: int) -> tuple[int, int] | None:
        """The (due, filing) of this minute's task that is due last; None if none waits."""
        return max((run.last for run in self._index if run.minute == minute), default=None)

    def load(self, minute: int, dues: Sequence[int], filings: Sequence[int], records: list[bytes]) -> None:
        """Take a page of one minute, sorted by (due, filing): wall milliseconds, filing numbers, records.

        All three are copied, the records themselves are not; arrays of 64-bit integers faster than lists. Neither due
        times nor filings may be negative.
        """
        assert len(dues) == len(filings) == len(records)
        if not records:
            return
        assert self._tick_of(dues[-1]) <= TICK_MAX
        for start in range(0, len(dues), RUN_LENGTH_MAX):
            part = slice(start, start + RUN_LENGTH_MAX)
            run = Run(minute, column(dues, part), column(filings, part), records[part])
            self._index.add(run)
            self._put(run)
        self._count(minute, len(records), sum(map(len, records)))

    def add(self, minute: int, due_ms: int, filing: int, record: bytes) -> None:
        """Take one task. What is overdue fires on the next advance."""
        run = self._index.enclosing(minute, due_ms)
        if run is not None and len(run) < RUN_LENGTH_MAX:
            run.insert(due_ms, filing, record)
        else:
            self._add_to_slot(minute, due_ms, filing, record)
        self._count(minute, 1, len(record))

    def contains(self, due_ms: int, filing: int) -> bool:
        return self._index.find(due_ms, filing) is not None

    def remove(self, due_ms: int, filing: int) -> bytes | None:
        """Drop exactly this filing and return its record; None if it does not wait here (any more)."""
        found = self._index.find(due_ms, filing)
        if found is None:
            return None
        run, index = found
        if index > run.head:
            record = run.pop(index)
        else:
            self._lift(run)
            record = run.pop(index)
            self._put_back(run)
        self._count(run.minute, -1, -len(record))
        return record

    def forget(self, minute: int, after: tuple[int, int]) -> int:
        """Drop all tasks of a minute above the point `after` = (due, filing), and return how many."""
        due_ms, filing = after
        before = self._length
        for run in [run for run in self._index if run.minute == minute]:
            index = run.index_of(due_ms, filing + 1)
            if index == run.head:
                self._lift(run)
                records = run.cut(index)
                self._put_back(run)
            else:
                records = run.cut(index)
            self._count(minute, -len(records), -sum(map(len, records)))
        return before - self._length

    def next_ms(self) -> int | None:
        """The earliest `now_ms` at which an advance releases something; None if nothing waits."""
        if self._ripe:
            return self._ripe[0].tick * self._tick_ms
        if self._next == _NEVER:
            return None
        level = self._levels[level_for(self._tick, self._next)]
        return min(run.tick for run in level.first_runs()) * self._tick_ms

    def advance(self, now_ms: int, limit: int) -> list[Slice]:
        """Release what is due at or before now, in order of ticks, at most `limit` tasks; the rest stays due."""
        now_tick = now_ms // self._tick_ms
        slices: list[Slice] = []
        while limit > 0 and self._ripen(now_tick):
            fired = self._release(now_tick, limit)
            limit -= len(fired.records)
            slices.append(fired)
        return slices

    def _ripen(self, now_tick: int) -> bool:
        """Move on to the next tick at which something is due, not beyond now. Is there one?"""
        ripe = self._ripe
        while not ripe:
            if self._next > now_tick:
                self._tick = max(self._tick, now_tick)
                return False
            self._open_up()
        return ripe[0].tick <= now_tick

    def _open_up(self) -> None:
        """Move into the first occupied slot: what stands there becomes ripe, or goes to lower levels."""
        assert self._next > self._tick
        level = self._levels[level_for(self._tick, self._next)]
        self._tick = self._next
        runs = level.take_first()
        self._find_next()
        for run in runs:
            self._put(run)

    def _find_next(self) -> None:
        for level in self._levels:
            if level.occupied:
                self._next = level.first_tick(self._tick)
                return
        self._next = _NEVER

    def _release(self, now_tick: int, limit: int) -> Slice:
        """Fire from the earliest ripe run, until it is another one's turn."""
        ripe = self._ripe
        run = ripe.pop(0)
        until = min(now_tick, ripe[0].tick if ripe else self._next)
        fired = run.take(until * self._tick_ms, limit)
        self._put_back(run)
        self._count(run.minute, -len(fired.records), -sum(map(len, fired.records)))
        return fired

    def _tick_of(self, due_ms: int) -> int:
        """Due times round up: never early."""
        return -(-due_ms // self._tick_ms)

    def _put(self, run: Run) -> None:
        """Put a run where its head belongs. It takes no more arrivals, for it leaves the slot that they share."""
        if run.open_at is not None:
            self._close(run)
        run.tick = tick = self._tick_of(run.head_ms)
        if tick <= self._tick:
            insort(self._ripe, run, key=_by_tick)
        else:
            assert tick <= TICK_MAX
            level = self._levels[level_for(self._tick, tick)]
            self._next = min(self._next, level.put(tick, run))

    def _lift(self, run: Run) -> None:
        """Take a run out of where its head put it."""
        if run.tick <= self._tick:
            self._ripe.remove(run)
        else:
            self._levels[level_for(self._tick, run.tick)].discard(run.tick, run)
            self._find_next()

    def _put_back(self, run: Run) -> None:
        """A run that was lifted goes where it belongs now, or ends."""
        if run:
            self._put(run)
            return
        self._index.discard(run)
        if run.open_at is not None:
            self._close(run)

    def _add_to_slot(self, minute: int, due_ms: int, filing: int, record: bytes) -> None:
        """A single arrival joins the open run of its slot and minute, or opens one."""
        tick = self._tick_of(due_ms)
        key = self._open_key(tick, minute)
        run = self._open.get(key)
        if run is None or len(run) >= RUN_LENGTH_MAX:
            self._open_run(key, Run(minute, array(INTEGERS, (due_ms,)), array(INTEGERS, (filing,)), [record]))
            return
        self._index.stretch(run, due_ms)
        run.insert(due_ms, filing, record)
        if tick < run.tick:
            run.tick = tick
            self._ripe.sort(key=_by_tick)

    def _open_key(self, tick: int, minute: int) -> tuple[int, int, int]:
        if tick <= self._tick:
            return _RIPE, 0, minute
        level = level_for(self._tick, tick)
        return level, slot_for(level, tick), minute

    def _open_run(self, key: tuple[int, int, int], run: Run) -> None:
        if (full := self._open.get(key)) is not None:
            self._close(full)
        self._put(run)
        self._index.add(run)
        self._open[key] = run
        run.open_at = key

    def _close(self, run: Run) -> None:
        assert run.open_at is not None
        del self._open[run.open_at]
        run.open_at = None

    def _count(self, minute: int, tasks: int, size_bytes: int) -> None:
        """Keep the sums: so many tasks and record bytes of a minute came (or went, if negative)."""
        self._length += tasks
        self._size_bytes += size_bytes
        if waiting := self._waiting.get(minute, 0) + tasks:
            self._waiting[minute] = waiting
        else:
            self._waiting.pop(minute, None)
