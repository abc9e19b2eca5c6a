"""Up to where may the offsets of a partition be committed?

Deliveries finish in any order, but a committed offset says that *all* before it are finished. So each partition keeps
its delivered offsets in order, and those that are finished are let go from the front only. Offsets have gaps; what
counts is what was delivered. Pure.
"""

from collections import deque
from collections.abc import Collection

Partition = tuple[str, int]


class Commits:
    """The unfinished deliveries of one group member, per partition."""

    def __init__(self) -> None:
        self._open: dict[Partition, deque[int]] = {}
        self._finished: dict[Partition, set[int]] = {}
        self._due: dict[Partition, int] = {}

    def __len__(self) -> int:
        """How many offsets are kept: delivered, and not covered by what may be committed."""
        return sum(map(len, self._open.values()))

    def taken(self, partition: Partition, offset: int) -> None:
        """An offset was delivered. One at or below an earlier one means that the partition went away and came back:
        what was delivered from there on will be delivered again."""
        waiting = self._open.setdefault(partition, deque())
        finished = self._finished.setdefault(partition, set())
        while waiting and waiting[-1] >= offset:
            finished.discard(waiting.pop())
        if self._due.get(partition, 0) > offset:
            del self._due[partition]
        waiting.append(offset)

    def finished(self, partition: Partition, offset: int) -> None:
        """That delivery needs no more care. One of a partition that is not kept (any more) changes nothing."""
        waiting = self._open.get(partition)
        if not waiting or not waiting[0] <= offset <= waiting[-1]:
            return
        finished = self._finished[partition]
        finished.add(offset)
        while waiting and waiting[0] in finished:
            self._due[partition] = waiting[0] + 1
            finished.remove(waiting.popleft())

    def keep(self, assigned: Collection[Partition]) -> None:
        """Forget the partitions that are not this member's: their commits are another's to make."""
        for partition in self._open.keys() - set(assigned):
            del self._open[partition], self._finished[partition]
            self._due.pop(partition, None)

    def due(self) -> dict[Partition, int]:
        """The next offset to read of each partition that moved since the last commit that went well."""
        return dict(self._due)

    def committed(self, offsets: dict[Partition, int]) -> None:
        """A commit of these went well."""
        for partition, offset in offsets.items():
            if self._due.get(partition) == offset:
                del self._due[partition]
