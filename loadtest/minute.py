"""Which tasks make up the measured minute, and did each fire once, in time?"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from typing import TYPE_CHECKING

from .contenders import Page, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .contenders import Fired

RECORD_BYTES = 136
PAGE_LENGTH = 5_000
MINUTE = 29_847_600  # nine o'clock of 2026-10-01 in UTC
MINUTE_MS = 60_000
LATE_LEAD_MS = 5_000
PEAK_SHARE = 100_000 / 375_000


class Workload:
    """The tasks of one minute: the same ones for the same seed, made page by page so that they need no memory."""

    def __init__(self, tasks: int, seed: int) -> None:
        self.tasks = tasks
        self.peak = max(1, round(tasks * PEAK_SHARE))
        self._seed = seed
        self.start_ms = MINUTE * MINUTE_MS
        chance = random.Random(seed)
        self.late = sorted(_arrival(chance, self.start_ms, tasks + number) for number in range(tasks // 10))
        self.cancelled = self._cancellations(chance)

    def pages(self) -> Iterator[Page]:
        """The minute's pages in order, spread evenly over it."""
        chance = random.Random(self._seed + 1)
        for first in range(0, self.tasks, PAGE_LENGTH):
            length = min(PAGE_LENGTH, self.tasks - first)
            low_ms, high_ms = (MINUTE_MS * number // self.tasks for number in (first, first + length))
            dues = sorted(self.start_ms + chance.randrange(low_ms, max(high_ms, low_ms + 1)) for _ in range(length))
            yield _page(chance, first, dues)

    def peak_pages(self) -> Iterator[Page]:
        chance = random.Random(self._seed + 2)
        for first in range(0, self.peak, PAGE_LENGTH):
            yield _page(chance, first, [self.start_ms] * min(PAGE_LENGTH, self.peak - first))

    def dues(self) -> dict[int, int]:
        """The due time of every filing, late ones too."""
        dues = {task.filing: task.due_ms for _, task in self.late}
        for page in self.pages():
            dues.update(zip(page.filings, page.dues, strict=True))
        return dues

    def _cancellations(self, chance: random.Random) -> list[tuple[int, int, int]]:
        """(when, due, filing), by when: one task in ten, at some time before it is due."""
        return sorted(
            (due_ms - 1 - chance.randrange(MINUTE_MS), due_ms, filing)
            for page in self.pages()
            for due_ms, filing in zip(page.dues, page.filings, strict=True)
            if chance.random() < 0.1
        )


def _page(chance: random.Random, first: int, dues: list[int]) -> Page:
    filings = [_filing(chance, first + number) for number in range(len(dues))]
    records = [chance.randbytes(RECORD_BYTES) for _ in dues]
    return Page(MINUTE, array("q", dues), array("q", filings), records)


def _filing(chance: random.Random, number: int) -> int:
    """A filing number as large as real ones; each one once, and rising within a minute."""
    return 1 << 60 | number << 20 | chance.getrandbits(20)


def _arrival(chance: random.Random, start_ms: int, number: int) -> tuple[int, Task]:
    """(when, task) of one late arrival."""
    due_ms = start_ms + chance.randrange(MINUTE_MS)
    task = Task(due_ms, _filing(chance, number), chance.randbytes(RECORD_BYTES))
    return due_ms - chance.randrange(LATE_LEAD_MS), task


class Firings:
    """What fired, and when."""

    def __init__(self) -> None:
        self.count = 0
        self._fired: list[tuple[int, list[int]]] = []

    def note(self, now_ms: int, fired: Fired) -> int:
        """Write down what one turn released, and return how many."""
        count = self.count
        for filings, records in fired:
            assert len(filings) == len(records)
            self._fired.append((now_ms, list(filings)))
            self.count += len(filings)
        return self.count - count

    def check(self, workload: Workload, late_ms_max: int) -> None:
        """Everything that was filed and not cancelled fired once, not early, and at most so late."""
        dues = workload.dues()
        for _, _, filing in workload.cancelled:
            del dues[filing]
        fired = Counter(filing for _, filings in self._fired for filing in filings)
        if fired != Counter(dues.keys()):
            raise RuntimeError("what fired is not what was filed")
        for now_ms, filings in self._fired:
            if not all(0 <= now_ms - dues[filing] <= late_ms_max for filing in filings):
                raise RuntimeError("a task fired early, or later than it had to")
