"""What has this reign finished, what of it is recorded, and which bucket rows count?

The owner's side of the shard's progress: marks made and not yet recorded, how far the logs are applied, which
minutes are closed or about to be. It builds checkpoints and takes note of those that succeeded. The rules named in
the comments are those of DESIGN.md, section 4.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ..store.position import POSITION_BITS, POSITION_MASK, position_of, write_timestamp
from ..store.progress import Checkpoint, Closing, Marks, NewMarks, Progress, mix
from ..store.record import FENCE, FENCE_AT
from ..store.task import BucketRow, minute_of
from .intake import Intake

Kind = Literal["fired", "removed"]


class Journal:
    """Progress of one reign. `offsets` are read from `intake` when a checkpoint is built."""

    def __init__(self, progress: Progress, fence: int, intake: Intake) -> None:
        self.fence = fence
        self.open_minute = progress.open_minute
        self.dropped_minute = progress.dropped_minute
        self.pieces = dict(progress.pieces)
        closed = {*range(progress.dropped_minute + 1, progress.open_minute), *progress.closed}
        self.undropped = {minute for minute in closed if minute > progress.dropped_minute}
        self.closings: deque[Closing] = deque()
        self.started = self.succeeded = 0
        self.wanted = False
        """Does someone wait for the next checkpoint, though nothing else is new?"""
        self.unrecorded = 0
        self._intake = intake
        self._reigns = progress.reigns
        self._marks = progress.marks
        self._dirty: dict[int, dict[int, Kind]] = {}
        self._closed = set(progress.closed)
        self._proven: dict[int, int] = {}
        self._closing: dict[int, Closing] = {}
        self._late: dict[int, int] = {}
        self._touched: dict[int, dict[int, int]] = {}
        """minute → log → the highest filing number by which that log filed or marked in it."""
        self._recorded = progress.offsets
        self._recorded_dropped = progress.dropped_minute
        self._recorded_pieces = dict(progress.pieces)
        self._filed: dict[int, tuple[int, int]] = {}
        self._writes = 0

    # Minutes.

    def shut(self, minute: int) -> bool:
        """Closed, or being closed: nothing is filed into it any more."""
        return minute < self.open_minute or minute in self._closed or minute in self._closing

    def place(self, due_ms: int) -> int:
        """The first minute at or above the due time's that is not shut."""
        minute = max(minute_of(due_ms), self.open_minute)
        while self.shut(minute):
            minute += 1
        return minute

    def piece(self, minute: int, size: int, rows_max: int, bytes_max: int) -> int:
        """The piece of a bucket into which the next row goes: the last one that is recorded.

        When that is full by this reign's count, the next checkpoint adds one. A row in a piece that no checkpoint
        knows would never be read, nor dropped.
        """
        rows, filled = self._filed.get(minute, (0, 0))
        recorded = self._recorded_pieces.get(minute, 1)
        full = rows >= rows_max or (rows > 0 and filled + size > bytes_max)
        if full and self.pieces.get(minute, 1) == recorded:
            self.pieces[minute] = recorded + 1
            self.wanted = True
        self._filed[minute] = rows + 1, filled + size
        return recorded - 1

    # Marks.

    def kind(self, minute: int, filing: int) -> Kind | None:
        marks = self._marks.get(minute)
        if marks is None:
            return None
        return "fired" if filing in marks.fired else "removed" if filing in marks.removed else None

    def marks(self, minute: int) -> Marks:
        return self._marks.get(minute) or Marks()

    def mark(self, minute: int, filings: Iterable[int], kind: Kind) -> None:
        """Mark filings; one that is marked already keeps its first mark."""
        if self.shut(minute):
            return  # whatever stood there is fired or removed, and recorded so
        marks = self._marks.setdefault(minute, Marks())
        fired, removed = marks.fired, marks.removed
        new = [filing for filing in filings if filing not in fired and filing not in removed]
        if not new:
            return
        (fired if kind == "fired" else removed).update(new)
        self._dirty.setdefault(minute, {}).update(dict.fromkeys(new, kind))
        self.unrecorded += len(new)

    def learn(self, read: Mapping[int, Marks]) -> None:
        """Take in the marks of some minutes that earlier reigns recorded."""
        for minute, marks in read.items():
            mine = self._marks.setdefault(minute, Marks())
            mine.fired |= marks.fired
            mine.removed |= marks.removed

    def touch(self, minute: int, filing: int) -> None:
        """Rule Y: the minute closes only with the offset of the record that filed or marked in it."""
        # Numbers of one log compare as its positions do.
        highest = self._touched.get(minute)
        if highest is None:
            highest = self._touched[minute] = {}
        log = filing >> POSITION_BITS
        if filing > highest.get(log, -1):
            highest[log] = filing

    def count_late(self, minute: int, count: int) -> None:
        self._late[minute] = self._late.get(minute, 0) + count

    # Rule V.

    @property
    def follows(self) -> bool:
        """Has another reigned before?"""
        return any(self._reigns)

    def valid(self, filing: int, fence: int) -> bool:
        """Does a bucket row written under `fence` count? Its writer's reign must have recorded its record."""
        if fence == self.fence:
            return self._intake.counts(filing)
        ends = self._reigns.get(fence)
        return ends is not None and filing & POSITION_MASK < ends[filing >> POSITION_BITS]

    def counting(self, minute: int, rows: Sequence[BucketRow]) -> list[BucketRow]:
        """Those of a minute's rows that are not marked and count."""
        marks = self.marks(minute)
        fired, removed, valid, fence = marks.fired, marks.removed, self.valid, FENCE.unpack_from
        return [
            row
            for row in rows
            if (filing := row.filing) not in fired
            and filing not in removed
            and valid(filing, fence(row.record, FENCE_AT)[0])
        ]

    # Writing.

    def timestamp(self) -> int:
        """The timestamp of the next batch of plain writes."""
        self._writes += 1
        return write_timestamp(self.fence, self._writes)

    def dirty(self) -> bool:
        return (
            self.wanted
            or bool(self._dirty or self._proven)
            or self._intake.offsets() != self._recorded
            or self.dropped_minute != self._recorded_dropped
        )

    def build(self, closable: Iterable[int]) -> Checkpoint:
        """The next checkpoint. Of the proven minutes those that may close close with it; the others are withdrawn."""
        offsets = self._intake.offsets()
        for minute in closable:
            if minute in self._proven and self.covered(minute):
                self._closing[minute] = self._closing_record(minute)
        self._proven.clear()
        self.started += 1
        self.wanted = False
        return Checkpoint(
            number=self.fence << 32 | self.started,
            offsets=offsets,
            open_minute=self._open_after(self._closing),
            dropped_minute=self.dropped_minute,
            marks=tuple(self._new_marks(minute) for minute in sorted(self._dirty) if minute not in self._closing),
            closed=tuple(sorted(self._closing)),
            pieces=tuple(sorted(self.pieces.items())),
        )

    def recorded(self, checkpoint: Checkpoint) -> None:
        """The checkpoint succeeded: what it says is durable."""
        for new in checkpoint.marks:
            self._settle(new.minute, (*new.fired, *new.removed))
        for minute, pieces in checkpoint.pieces:
            if pieces != self._recorded_pieces.get(minute, 1):
                self._recorded_pieces[minute] = pieces
                self._filed.pop(minute, None)
        self.closings += [self._closing.pop(minute) for minute in checkpoint.closed]
        for minute in checkpoint.closed:
            self._settle(minute, list(self._dirty.get(minute, ())))
            self._closed.add(minute)
            self.undropped.add(minute)
            for table in (self._marks, self._touched, self._late, self._filed):
                table.pop(minute, None)
        self.open_minute = checkpoint.open_minute
        self._closed = {minute for minute in self._closed if minute >= self.open_minute}
        self._recorded = checkpoint.offsets
        self._recorded_dropped = checkpoint.dropped_minute
        self.succeeded = checkpoint.number & 0xFFFFFFFF

    # Closing.

    def prove(self, minute: int, rows: int) -> None:
        """All that counts among the rows of this minute is marked: it may close with the next checkpoint."""
        self._proven[minute] = rows

    def covered(self, minute: int) -> bool:
        """Rule Y: all that filed or marked in the minute is applied, and so stored with its close."""
        offsets = self._intake.offsets()
        return all(position_of(filing) < offsets[log] for log, filing in self._touched.get(minute, {}).items())

    def proven(self) -> list[int]:
        return list(self._proven)

    def settled(self, minute: int) -> bool:
        """Neither proven nor closing: the proposal came to an end, one way or the other."""
        return minute not in self._proven and minute not in self._closing

    def closed(self, minute: int) -> bool:
        return minute < self.open_minute or minute in self._closed

    def dropped(self, minute: int) -> None:
        """A bucket is gone; the low mark moves up to below the lowest one that is not."""
        self.undropped.discard(minute)
        self.pieces.pop(minute, None)
        self._recorded_pieces.pop(minute, None)
        self.dropped_minute = max(self.dropped_minute, min(self.undropped, default=self.open_minute) - 1)
        self.dropped_minute = min(self.dropped_minute, self.open_minute - 1)

    def _closing_record(self, minute: int) -> Closing:
        marks = self.marks(minute)
        digest = 0
        for filing in marks.fired | marks.removed:
            digest ^= mix(filing)
        return Closing(
            minute, self._proven[minute], len(marks.fired), len(marks.removed), self._late.get(minute, 0), digest
        )

    def _open_after(self, closing: Iterable[int]) -> int:
        closed = {*self._closed, *closing}
        minute = self.open_minute
        while minute in closed:
            minute += 1
        return minute

    def _new_marks(self, minute: int) -> NewMarks:
        kinds = self._dirty[minute]
        return NewMarks(
            minute,
            tuple(filing for filing, kind in kinds.items() if kind == "fired"),
            tuple(filing for filing, kind in kinds.items() if kind == "removed"),
        )

    def _settle(self, minute: int, filings: Iterable[int]) -> None:
        dirty = self._dirty.get(minute)
        if dirty is None:
            return
        for filing in filings:
            if dirty.pop(filing, None):
                self.unrecorded -= 1
        if not dirty:
            del self._dirty[minute]
