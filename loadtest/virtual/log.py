"""What stands in one of a shard's logs in virtual time?

Only commands and outcomes that came while the day was played, as values: what decoding costs is measured elsewhere. A
record is kept until a checkpoint has passed it, as a new owner reads on from there.
"""

from collections import deque
from collections.abc import Callable

from ...broker.command import Command
from ...broker.outcome import Outcome
from ...broker.port import Fetched
from ...broker.wire import Record
from ...dispatcher.intake import Item
from ...store.position import Log, pack_position, unpack_position
from .rows import INCARNATION

What = Command | Outcome


class VirtualLog:
    """One log, whose first record is to have this offset."""

    def __init__(self, log: Log, shard: int, first: int) -> None:
        self.log = log
        self._shard = shard
        self._first = first
        self._times_ms: deque[int] = deque()
        self._whats: deque[What] = deque()

    @property
    def end(self) -> int:
        """The position of the next record."""
        return pack_position(INCARNATION, self._first + len(self._whats))

    def append(self, time_ms: int, make: Callable[[int], What]) -> None:
        """Add a record; it is made from its position."""
        self._whats.append(make(self.end))
        self._times_ms.append(time_ms)

    def fetch(self, offset: int, limit: int) -> Fetched:
        there = self._first + len(self._whats)
        stop = min(there, offset + limit)
        records = [
            Record("", self._shard, at, self._times_ms[at - self._first], None, None) for at in range(offset, stop)
        ]
        return Fetched(records, stop, there, INCARNATION)

    def item(self, record: Record) -> Item:
        """What a decoder would make of it."""
        what = self._whats[record.offset - self._first]
        return Item(self.log, pack_position(INCARNATION, record.offset), record.time_ms, what, record)

    def trim(self, position: int) -> None:
        """What stands below is applied, and recorded so."""
        offset = unpack_position(position).offset
        while self._whats and self._first < offset:
            self._whats.popleft()
            self._times_ms.popleft()
            self._first += 1
