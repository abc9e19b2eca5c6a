"""What would one use instead of the wheel? Four answers behind one interface.

All four must do what the owner of a shard needs: take pages and single tasks, answer a cancellation truthfully ("it
waited here" or not) and let the record go at once, and release what is due in order. Each is written as well as its
parts allow:

- `Wheel`: ours.
- `heapq`: a heap of (due, filing), and a dictionary from filing to record. A cancelled filing leaves the dictionary at
  once and the heap when its time comes, as the manual of heapq proposes.
- `sortedcontainers`: a SortedDict from (due, filing) to record.
- `asyncio.call_at`: one timer handle a task on an event loop of its own, whose time is set and never waited for, and a
  dictionary from filing to handle, without which nothing can be cancelled.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..wheel import Wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Page(NamedTuple):
    """One page of a minute, sorted by (due, filing)."""

    minute: int
    dues: Sequence[int]
    filings: Sequence[int]
    records: list[bytes]


class Task(NamedTuple):
    """A single arrival."""

    due_ms: int
    filing: int
    record: bytes


Fired = list[tuple["Sequence[int]", "Sequence[bytes]"]]
"""Filings and their records, in one or several pieces."""


class Contender(Protocol):
    """A queue of waiting tasks."""

    def load(self, page: Page) -> None: ...

    def add(self, minute: int, task: Task) -> None: ...

    def cancel(self, due_ms: int, filing: int) -> bool: ...

    def fire(self, now_ms: int, limit: int) -> Fired:
        """Release what is due at or before now, at most `limit` tasks where a limit can be kept."""
        ...

    def close(self) -> None: ...


class WheelContender:
    """Ours."""

    def __init__(self, now_ms: int) -> None:
        self._wheel = Wheel(now_ms)

    def load(self, page: Page) -> None:
        self._wheel.load(page.minute, page.dues, page.filings, page.records)

    def add(self, minute: int, task: Task) -> None:
        self._wheel.add(minute, task.due_ms, task.filing, task.record)

    def cancel(self, due_ms: int, filing: int) -> bool:
        return self._wheel.remove(due_ms, filing) is not None

    def fire(self, now_ms: int, limit: int) -> Fired:
        return [(part.filings, part.records) for part in self._wheel.advance(now_ms, limit)]

    def close(self) -> None:
        pass


class HeapContender:
    """A binary heap and a dictionary."""

    def __init__(self, now_ms: int) -> None:
        del now_ms
        self._heap: list[tuple[int, int]] = []
        self._records: dict[int, bytes] = {}

    def load(self, page: Page) -> None:
        heap = self._heap
        for pair in zip(page.dues, page.filings, strict=True):
            heappush(heap, pair)
        self._records.update(zip(page.filings, page.records, strict=True))

    def add(self, minute: int, task: Task) -> None:
        del minute
        heappush(self._heap, (task.due_ms, task.filing))
        self._records[task.filing] = task.record

    def cancel(self, due_ms: int, filing: int) -> bool:
        del due_ms
        return self._records.pop(filing, None) is not None

    def fire(self, now_ms: int, limit: int) -> Fired:
        heap, take = self._heap, self._records.pop
        filings: list[int] = []
        records: list[bytes] = []
        while heap and heap[0][0] <= now_ms and len(filings) < limit:
            filing = heappop(heap)[1]
            if (record := take(filing, None)) is not None:
                filings.append(filing)
                records.append(record)
        return [(filings, records)] if filings else []

    def close(self) -> None:
        pass


class SortedContender:
    """A sorted dictionary."""

    def __init__(self, now_ms: int) -> None:
        from sortedcontainers import SortedDict

        del now_ms
        self._tasks = SortedDict()

    def load(self, page: Page) -> None:
        self._tasks.update(zip(zip(page.dues, page.filings, strict=True), page.records, strict=True))

    def add(self, minute: int, task: Task) -> None:
        del minute
        self._tasks[task.due_ms, task.filing] = task.record

    def cancel(self, due_ms: int, filing: int) -> bool:
        return self._tasks.pop((due_ms, filing), None) is not None

    def fire(self, now_ms: int, limit: int) -> Fired:
        take = self._tasks.popitem
        filings: list[int] = []
        records: list[bytes] = []
        for _ in range(min(limit, self._tasks.bisect_left((now_ms + 1,)))):
            (_, filing), record = take(0)
            filings.append(filing)
            records.append(record)
        return [(filings, records)] if filings else []

    def close(self) -> None:
        pass


class _SetLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is what it was set to."""

    time_s = 0.0

    def time(self) -> float:
        return self.time_s


class LoopContender:
    """Timers of an event loop.

    Its time counts from the start of the measurement: as floats, seconds since 1970 are too coarse for a loop, which
    adds its clock's resolution of a nanosecond to them.
    """

    def __init__(self, now_ms: int) -> None:
        self._loop = _SetLoop()
        self._start_ms = now_ms
        self._handles: dict[int, asyncio.TimerHandle] = {}
        self._filings: list[int] = []
        self._records: list[bytes] = []

    def load(self, page: Page) -> None:
        start_ms, handles, call_at, run = self._start_ms, self._handles, self._loop.call_at, self._run
        for due_ms, filing, record in zip(page.dues, page.filings, page.records, strict=True):
            handles[filing] = call_at((due_ms - start_ms) / 1_000, run, filing, record)

    def add(self, minute: int, task: Task) -> None:
        del minute
        when_s = (task.due_ms - self._start_ms) / 1_000
        self._handles[task.filing] = self._loop.call_at(when_s, self._run, task.filing, task.record)

    def cancel(self, due_ms: int, filing: int) -> bool:
        del due_ms
        if handle := self._handles.pop(filing, None):
            handle.cancel()
        return handle is not None

    def fire(self, now_ms: int, limit: int) -> Fired:
        """One turn of the loop. It runs all timers that are due: it has no limit."""
        del limit
        self._loop.time_s = (now_ms - self._start_ms) / 1_000
        self._loop.call_soon(self._loop.stop)
        self._loop.run_forever()
        fired: Fired = [(self._filings, self._records)] if self._filings else []
        self._filings, self._records = [], []
        return fired

    def _run(self, filing: int, record: bytes) -> None:
        del self._handles[filing]
        self._filings.append(filing)
        self._records.append(record)

    def close(self) -> None:
        self._loop.close()


CONTENDERS: dict[str, Callable[[int], Contender]] = {
    "wheel": WheelContender,
    "heapq": HeapContender,
    "sortedcontainers": SortedContender,
    "asyncio.call_at": LoopContender,
}
"""Each is made with the time at which it starts, in wall milliseconds."""
