"""What is a run, and how is one task found, added, dropped or fired in it?

A run is a sorted stretch of waiting tasks of one minute: a page as the store gave it, or single arrivals that share a
slot. Three columns stand side by side, ordered by (due, filing):

    offsets   array of unsigned 32-bit   due − base_ms
    filings   array of unsigned 64-bit   the filing numbers
    records   list of bytes              what is published, untouched

Arrays are one object however long they are, and `bytes` are no containers: so the garbage collector sees four objects
a run, where a tuple a task would show it thousands. What is fired leaves from the front, by moving `head`; its records
are let go at once, what else stands before `head` stays until the run ends (20 bytes a task).

The base is the first due time with its low 32 bits cleared, so that an offset *is* the low half of a due time, and
columns are cut and joined by the copying of bytes, not by a loop over integers. A page whose high halves differ (it
spans weeks: it was overdue) keeps its due times whole, in 64 bits. So does a run that begins with a single arrival, for
what joins it may lie anywhere in time: a retry next year, a due time of last century.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

INTEGERS: Literal["L", "Q"] = "L" if array("L").itemsize == 8 else "Q"
"""The type of 64-bit columns. `L` takes a list of Python integers three times as fast as `q`: it is not range-checked
by way of a format string. Neither due times nor filings are ever negative."""

HALF_BITS = 32
_LOW_HALF = 0 if sys.byteorder == "little" else 1


class Slice(NamedTuple):
    """Tasks of one minute that fell due together, in order of (due, filing); the three columns are equally long."""

    minute: int
    dues: Sequence[int]
    """Wall milliseconds as they were asked for, not rounded to ticks."""
    filings: Sequence[int]
    records: Sequence[bytes]


class Run:
    """One sorted run. Its wheel moves it from slot to slot as its head comes nearer."""

    __slots__ = ("base_ms", "filings", "first_ms", "head", "minute", "offsets", "open_at", "records", "span_ms", "tick")

    def __init__(self, minute: int, dues: array[int], filings: array[int], records: list[bytes]) -> None:
        """Take the columns of a page, sorted by (due, filing) and not empty. The arrays are of type `INTEGERS`."""
        self.minute = minute
        self.first_ms, last_ms = dues[0], dues[-1]
        self.span_ms = last_ms - self.first_ms
        if len(dues) > 1 and self.first_ms >> HALF_BITS == last_ms >> HALF_BITS:
            self.base_ms = self.first_ms >> HALF_BITS << HALF_BITS
            self.offsets = _low_halves(dues)
        else:
            self.base_ms = 0
            self.offsets = dues
        self.filings = filings
        self.records = records
        self.head = 0
        self.tick = 0
        """The tick of the head when the wheel put the run in its place."""
        self.open_at: tuple[int, int, int] | None = None
        """The slot and minute whose single arrivals may join; None if they may not (any more)."""

    def __len__(self) -> int:
        return len(self.offsets) - self.head

    @property
    def head_ms(self) -> int:
        """The earliest due time that still waits."""
        return self.base_ms + self.offsets[self.head]

    @property
    def last(self) -> tuple[int, int]:
        """The (due, filing) of the task that is due last."""
        return self.base_ms + self.offsets[-1], self.filings[-1]

    def encloses(self, due_ms: int) -> bool:
        """Does this due time lie between the head and the tail?"""
        return self.offsets[self.head] <= due_ms - self.base_ms <= self.offsets[-1]

    def index_of(self, due_ms: int, filing: int) -> int:
        """The index of the first waiting task that is not before (due, filing)."""
        offset = due_ms - self.base_ms
        low = bisect_left(self.offsets, offset, self.head)
        return bisect_left(self.filings, filing, low, bisect_right(self.offsets, offset, low))

    def find(self, due_ms: int, filing: int) -> int | None:
        """The index of exactly this filing, if it waits here."""
        index = self.index_of(due_ms, filing)
        if index == len(self.offsets) or self.filings[index] != filing or self.offsets[index] != due_ms - self.base_ms:
            return None
        return index

    def insert(self, due_ms: int, filing: int, record: bytes) -> None:
        index = self.index_of(due_ms, filing)
        self.offsets.insert(index, due_ms - self.base_ms)
        self.filings.insert(index, filing)
        self.records.insert(index, record)

    def pop(self, index: int) -> bytes:
        del self.offsets[index]
        del self.filings[index]
        return self.records.pop(index)

    def cut(self, index: int) -> list[bytes]:
        """Give up all from `index` on, and return its records."""
        records = self.records[index:]
        del self.offsets[index:], self.filings[index:], self.records[index:]
        return records

    def take(self, until_ms: int, limit: int) -> Slice:
        """Fire what is due at or before `until_ms`, at most `limit` tasks."""
        start, offsets, records = self.head, self.offsets, self.records
        stop = bisect_right(offsets, until_ms - self.base_ms, start, min(len(offsets), start + limit))
        self.head = stop
        dues = _whole(self.base_ms, offsets[start:stop])
        fired = records[start:stop]
        # The run may wait long for its next task: it must not keep what is gone.
        records[start:stop] = [b""] * (stop - start)
        return Slice(self.minute, dues, self.filings[start:stop], fired)


def column(numbers: Sequence[int], part: slice) -> array[int]:
    """A copy of a part of some 64-bit integers. Those of an array are copied as bytes, without making objects."""
    if isinstance(numbers, array) and numbers.itemsize == 8:
        copy = array(INTEGERS)
        copy.frombytes(memoryview(numbers)[part].cast("B"))
        return copy
    return array(INTEGERS, numbers[part])


def _low_halves(dues: array[int]) -> array[int]:
    halves = memoryview(dues).cast("B").cast("I")
    return array("I", halves[_LOW_HALF::2].tobytes())


def _whole(base_ms: int, offsets: array[int]) -> Sequence[int]:
    """The due times of some offsets: each low half beside the high half that all of them share."""
    if offsets.typecode == INTEGERS:
        return offsets
    pairs = memoryview(array(INTEGERS, (base_ms,)) * len(offsets)).cast("B").cast("I")
    pairs[_LOW_HALF::2] = memoryview(offsets)
    return pairs.cast("B").cast(INTEGERS)
