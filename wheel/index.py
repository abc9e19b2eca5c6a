"""Which runs may hold a task that is due at a given time?

Runs overlap: pieces of one bucket, pages of two minutes, single arrivals beside both. They are kept sorted by their
first due time, and none is longer than the longest, so only those that start within that span before a due time can
reach it. Pages of one bucket follow one another, hence this is one or two runs in practice; one run of overdue tasks
that spans years costs a walk over all runs, a few hundred, while it lasts.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .run import Run


class RunIndex:
    """All runs of a wheel, by first due time. A run's `first_ms` and `span_ms` are changed here alone."""

    __slots__ = ("_firsts", "_runs", "_span_ms_max")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: list[Run] = []
        self._span_ms_max = 0

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def add(self, run: Run) -> None:
        at = bisect_right(self._firsts, run.first_ms)
        self._firsts.insert(at, run.first_ms)
        self._runs.insert(at, run)
        self._span_ms_max = max(self._span_ms_max, run.span_ms)

    def discard(self, run: Run) -> None:
        at = self._runs.index(run, bisect_left(self._firsts, run.first_ms))
        del self._firsts[at], self._runs[at]
        if run.span_ms == self._span_ms_max:
            self._span_ms_max = max((other.span_ms for other in self._runs), default=0)

    def stretch(self, run: Run, due_ms: int) -> None:
        """A task due at `due_ms` joins the run: let its bounds hold it."""
        if due_ms < run.first_ms:
            self.discard(run)
            run.span_ms += run.first_ms - due_ms
            run.first_ms = due_ms
            self.add(run)
        elif due_ms - run.first_ms > run.span_ms:
            run.span_ms = due_ms - run.first_ms
            self._span_ms_max = max(self._span_ms_max, run.span_ms)

    def enclosing(self, minute: int, due_ms: int) -> Run | None:
        """A run of the minute that has tasks at or before and at or after `due_ms`."""
        at = bisect_right(self._firsts, due_ms)
        earliest_ms = due_ms - self._span_ms_max
        while at and self._firsts[at - 1] >= earliest_ms:
            at -= 1
            run = self._runs[at]
            if run.minute == minute and run.encloses(due_ms):
                return run
        return None

    def find(self, due_ms: int, filing: int) -> tuple[Run, int] | None:
        """The run that holds this filing, and its index there."""
        at = bisect_right(self._firsts, due_ms)
        earliest_ms = due_ms - self._span_ms_max
        while at and self._firsts[at - 1] >= earliest_ms:
            at -= 1
            run = self._runs[at]
            if due_ms <= run.first_ms + run.span_ms and (index := run.find(due_ms, filing)) is not None:
                return run, index
        return None
