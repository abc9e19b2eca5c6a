"""Which records of a partition that is being read are in memory, and what may be said to one who asks from an offset?

Pure. A run is the stretch from `start` to `next_offset`, and the records in it; between them are gaps (transactions'
marks, compaction). Whoever asks from an offset within it gets the records from there on and is told where to read on,
past the gaps. What lies before the offset asked for is let go, so the last answer can be given once more.
"""

from bisect import bisect_left
from collections.abc import Sequence

from .wire import Record


class Run:
    """The records from one offset on, as far as they have come."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.next_offset = start
        self.end_offset = start
        self.heard = False
        """Whether anything has been heard of the partition since reading began at `start`."""
        self.at_end = False
        """Whether the reader stood at the partition's end when it was last heard of."""
        self.size = 0
        self._records: list[Record] = []

    def __len__(self) -> int:
        return len(self._records)

    def covers(self, offset: int) -> bool:
        return self.start <= offset <= self.next_offset

    def add(self, records: Sequence[Record], next_offset: int, end_offset: int, size: int) -> None:
        """Records have come, in order, from `next_offset` on; `size` are their bytes."""
        self._records += records
        self.size += size
        self.next_offset = max(self.next_offset, next_offset)
        self.end_offset = max(self.end_offset, end_offset, self.next_offset)
        self.heard = True
        self.at_end = False

    def reach_end(self, offset: int) -> None:
        """The reader stands at the end of the partition: nothing is before this offset but what has come."""
        self.next_offset = self.end_offset = max(self.next_offset, offset)
        self.heard = self.at_end = True

    def let_go(self, before: int) -> None:
        """Forget what stands before an offset."""
        if not self.start < before <= self.next_offset:
            return
        old = bisect_left(self._records, before, key=_offset)
        self.size = self.size * (len(self._records) - old) // max(1, len(self._records))
        del self._records[:old]
        self.start = before

    def take(self, offset: int, limit: int) -> tuple[Sequence[Record], int] | None:
        """Records from an offset that the run covers, and where to read on. None if there is nothing to say yet."""
        at = bisect_left(self._records, offset, key=_offset)
        taken = self._records[at : at + limit]
        if at + len(taken) < len(self._records):
            return taken, taken[-1].offset + 1
        return (taken, self.next_offset) if taken or self.next_offset > offset else None


def _offset(record: Record) -> int:
    return record.offset
