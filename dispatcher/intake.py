"""Which delivered records are applied, and which is to be applied next?

One *reader* a log keeps the records as they came: the offset moves past those at its front that are applied, the
receipt included (rule O), and where nothing is left it stands at the end of what was read, for offsets have gaps.
The read-ahead is bounded; of its commands the nearest due goes first, but those of one key keep their order in their
log, and a batch takes at most one of a key (rules U and X). An outcome waits until the record of its filing is
applied (rule W), and what follows it in its log and of its key waits behind it. One that only says that its task is
done is in no hurry: such *ends* stand in a line of their own, and are taken when the caller wants them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from ..broker.command import Code, Command, Redrive, Rejection, Reschedule, Standing, Submit
from ..broker.outcome import Outcome
from ..broker.port import Fetched
from ..broker.wire import Message, Record
from ..store.position import (
    INDEX_BITS,
    POSITION_BITS,
    POSITION_MASK,
    Log,
    filing_number,
    log_of,
    pack_position,
    position_of,
)
from ..store.progress import Offsets

_PRODUCED = (Rejection, Message)
_TIMED = (Submit, Reschedule, Redrive)


class Item(Struct, gc=False, eq=False):
    """One thing to apply: what the decoder made of a record, or of one item of a batch record.

    `what` is a `Message` where the record belongs into another shard and only has to be produced there.
    """

    log: Log
    position: int
    time_ms: int
    what: Command | Outcome | Rejection | Message
    record: Record
    key: str = ""
    """Whose turn it takes. What is forwarded keeps its key's order too, or the receiver took it for a repeat."""

    def __post_init__(self) -> None:
        what = self.what
        if isinstance(what, Message):
            self.key = (what.key or b"").decode()
        elif not isinstance(what, Rejection):
            self.key = what.key

    @property
    def decides(self) -> bool:
        """Is it decided on by its key's row? The rest is only to be produced somewhere."""
        return not isinstance(self.what, _PRODUCED)

    @property
    def filing(self) -> int:
        """The number of the filing that it causes, if it causes one."""
        return filing_number(self.log, self.position)


Decode = Callable[[Log, Record, int], Sequence[Item]]
_Head = tuple[int, int, Item]
"""The first of its key in its log: urgency, turn, item."""


class _Delivered(Struct, gc=False, eq=False):
    position: int
    left: int
    done: set[int]


class Reader:
    """One log of the shard: what was delivered and not yet applied, and where to read on."""

    def __init__(self, start: int) -> None:
        self.next_position = start
        self.end_position = start
        self.fetches = 0
        self.waiting = 0
        self._queue: deque[_Delivered] = deque()
        self._records: dict[int, _Delivered] = {}

    @property
    def offset(self) -> int:
        """The position below which all delivered records are applied."""
        return self._queue[0].position if self._queue else self.next_position

    def deliver(self, position: int, items: int) -> None:
        if not items:
            return  # nothing to apply: the offset passes it with its neighbours
        self._records[position] = delivered = _Delivered(position, items, set())
        self._queue.append(delivered)
        self.waiting += items

    def applied(self, position: int) -> bool:
        if position < self.offset:
            return True
        delivered = self._records.get(_record_position(position))
        return delivered is not None and position in delivered.done

    def done(self, position: int) -> set[int]:
        """An item is applied. Return the positions of all items of its record if it was the last of them."""
        delivered = self._records[_record_position(position)]
        delivered.left -= 1
        delivered.done.add(position)
        self.waiting -= 1
        while self._queue and not self._queue[0].left:
            del self._records[self._queue.popleft().position]
        return set() if delivered.left else delivered.done


class Intake:
    """The three logs of one shard. `decode` makes the items of a record (see `decoding`)."""

    def __init__(self, starts: Offsets, decode: Decode, read_ahead: int = 20_000) -> None:
        self.readers = tuple(Reader(start) for start in starts)
        self._decode = decode
        self._read_ahead = read_ahead
        self._mine: set[int] = set()
        self._orders: dict[Log, dict[str, deque[Item] | None]] = {log: {} for log in Log}
        """log → key → what waits behind the first of that key, which few keys have."""
        self._heads: list[_Head] = []
        self._ends: deque[_Head] = deque()
        self._taken: set[str] = set()
        self._behind: dict[str, list[_Head]] = {}
        self._plain: deque[Item] = deque()
        self._early: list[tuple[Item, int]] = []
        self._turn = 0

    @property
    def waiting(self) -> int:
        return sum(reader.waiting for reader in self.readers)

    def room(self, log: Log) -> int:
        """How many records of a log may be delivered now."""
        return max(0, self._read_ahead - self.readers[log].waiting)

    def deliver(self, log: Log, fetched: Fetched) -> None:
        """Take in what was fetched from the reader's `next_position` on."""
        reader = self.readers[log]
        reader.fetches += 1
        for record in fetched.records:
            items = self._decode(log, record, fetched.incarnation)
            reader.deliver(pack_position(fetched.incarnation, record.offset), len(items))
            for item in items:
                self._enqueue(item)
        reader.next_position = max(reader.next_position, pack_position(fetched.incarnation, fetched.next_offset))
        reader.end_position = max(reader.end_position, pack_position(fetched.incarnation, fetched.end_offset))
        self._wake_early()

    def ready(self) -> bool:
        """Is there anything to take besides ends?"""
        return bool(self._plain or self._heads)

    @property
    def ends(self) -> int:
        """How many outcomes wait that only say that their tasks are done."""
        return len(self._ends)

    def take(self, limit: int, *, ends: bool = True) -> list[Item]:
        """The next batch: at most one item of a key, and none of a key of which one is not done."""
        batch: list[Item] = []
        while self._plain and len(batch) < limit:
            batch.append(self._plain.popleft())
        while ends and self._ends and len(batch) < limit:
            self._take(self._ends.popleft(), batch)
        while self._heads and len(batch) < limit:
            self._take(heappop(self._heads), batch)
        return batch

    def _take(self, head: "_Head", batch: list[Item]) -> None:
        item = head[2]
        if item.key in self._taken:
            self._behind.setdefault(item.key, []).append(head)
        else:
            self._taken.add(item.key)
            batch.append(item)

    def remembered(self, filing: int) -> None:
        """I wrote this filing and have passed the step that remembers it (rule V)."""
        self._mine.add(filing)

    def done(self, items: Sequence[Item]) -> None:
        """These are applied with all their effects."""
        for item in items:
            finished = self.readers[item.log].done(item.position)
            for position in finished:
                self._mine.discard(filing_number(item.log, position))
            if not isinstance(item.what, Rejection):
                self._taken.discard(item.key)
                for head in self._behind.pop(item.key, ()):
                    self._line_up(head)
                self._advance(item)
        self._wake_early()

    def applied(self, filing: int) -> bool:
        return self.readers[filing >> POSITION_BITS].applied(filing & POSITION_MASK)

    def counts(self, filing: int) -> bool:
        """Does a bucket row of this reign count?"""
        return filing in self._mine or self.applied(filing)

    def offsets(self) -> Offsets:
        submit, forwarded, outcomes = self.readers
        return submit.offset, forwarded.offset, outcomes.offset

    def reached(self, ends: Offsets) -> bool:
        return all(have >= end for have, end in zip(self.offsets(), ends, strict=True))

    def _enqueue(self, item: Item) -> None:
        if isinstance(item.what, Rejection):
            self._plain.append(item)
            return
        order, key = self._orders[item.log], item.key
        if key not in order:
            order[key] = None
            self._head(item)
        elif (behind := order[key]) is not None:
            behind.append(item)
        else:
            order[key] = deque((item,))

    def _head(self, item: Item) -> None:
        """An item came to the front of its key and log: it may be taken, unless it is too early for it."""
        if isinstance(item.what, Outcome) and not self.applied(item.what.filing):
            self._early.append((item, self.readers[log_of(item.what.filing)].fetches))
        else:
            self._turn += 1
            self._line_up((_urgency_ms(item), self._turn, item))

    def _line_up(self, head: "_Head") -> None:
        what = head[2].what
        if isinstance(what, Outcome) and what.kind == "done":
            self._ends.append(head)
        else:
            heappush(self._heads, head)

    def _advance(self, item: Item) -> None:
        order, key = self._orders[item.log], item.key
        behind = order[key]
        if behind:
            self._head(behind.popleft())
        else:
            del order[key]

    def _wake_early(self) -> None:
        """Let in the outcomes whose filing's record is applied; refuse those that name none that exists.

        Such a one lies at or beyond the end of its log, as seen by a fetch that began after the outcome was read.
        """
        early, self._early = self._early, []
        for item, fetches in early:
            assert isinstance(item.what, Outcome)
            filing = item.what.filing
            reader = self.readers[log_of(filing)]
            if self.applied(filing):
                self._head(item)
            elif reader.fetches >= fetches + 2 and position_of(filing) >= reader.end_position:
                self._advance(item)
                item.what = _unknown_filing(item)
                self._plain.append(item)
            else:
                self._early.append((item, fetches))


def _record_position(position: int) -> int:
    return position >> INDEX_BITS << INDEX_BITS


def _urgency_ms(item: Item) -> int:
    """Nearest due first; what is tried again, and what ends a task, before all."""
    if isinstance(item.what, _TIMED):
        return item.what.due_ms
    return 0


def _unknown_filing(item: Item) -> Rejection:
    standing = Standing(item.log, item.position, item.time_ms)
    return Rejection(standing, Code.UNKNOWN_FILING, "the outcome names a filing that no record has made", "filing")
