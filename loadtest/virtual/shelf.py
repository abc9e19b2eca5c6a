"""What does the store answer in virtual time, where rows are made when they are read?

The store of one shard. What the profile filed is made anew at each reading; what the shard itself writes is kept until
its minute is dropped, and so are the task rows that commands are about. Progress is kept as a store keeps it, so a new
owner finds what its predecessor left. Everything is answered at once: it is the player who lets time pass.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from ...broker.port import Produced
from ...dispatcher.effects import (
    Claim,
    Drop,
    Effect,
    LookUp,
    Produce,
    PutClosing,
    ReadDue,
    ReadEnds,
    ReadFilings,
    ReadLetters,
    ReadMarks,
    ReadPage,
    ReadProgress,
    Record,
    Write,
)
from ...store.errors import ClaimRefused
from ...store.position import pack_position
from ...store.progress import Marks, Progress
from ...store.task import BucketRow, TaskRow, minute_of
from ..profile import FAR_MS_MIN, Profile
from .accounts import Accounts
from .log import VirtualLog
from .rows import FILERS_FENCE, INCARNATION, KEY, LIVE_OFFSET, Rows

KNOWN_MINUTES = 2
"""So long after its minute was dropped a task row is known, for the outcomes that still come."""


class Shelf:
    """One shard's rows and progress. `hidden` is a filing that no page shows: a loss, put in to see it found."""

    def __init__(self, rows: Rows, accounts: Accounts, logs: Sequence[VirtualLog], profile: Profile) -> None:
        self.rows = rows
        self.accounts = accounts
        self.logs = logs
        self.hidden = -1
        first = minute_of(profile.start_ms)
        self._far = minute_of(profile.end_ms + FAR_MS_MIN)
        """From this minute on nothing is played: what is filed there is counted, and not kept."""
        self.checkpoints = 0
        self.progress = Progress(
            shard=rows.shard,
            fence=FILERS_FENCE,
            member="filer",
            open_minute=first,
            dropped_minute=first - 1,
            offsets=(pack_position(INCARNATION, LIVE_OFFSET), *(pack_position(INCARNATION, 0),) * 2),
        )
        self._read_to: dict[int, int] = {}
        """minute → how many of the profile's rows have been read at least once."""
        self._kept: dict[int, list[BucketRow]] = {}
        self._tasks: dict[str, TaskRow] = {}
        self._asked: dict[int, list[str]] = {}
        """minute → the keys whose task rows are needed until it is dropped."""

    def answer(self, effect: Effect) -> object:
        return _ANSWERS[type(effect)](self, effect)

    def know(self, row: TaskRow) -> None:
        """A command or outcome is about to ask for this row, unless the shard has written a newer one."""
        if row.key not in self._tasks:
            self._remember(row)

    # Progress.

    def claim(self, effect: Claim) -> Progress:
        progress = self.progress
        if (progress.fence, progress.member) != (effect.fence, effect.member):
            if progress.fence >= effect.fence:
                raise ClaimRefused(progress.fence)
            progress.reigns[progress.fence] = progress.offsets
            progress.fence, progress.member = effect.fence, effect.member
        return self._found(effect.marks_up_to)

    def _found(self, marks_up_to: int) -> Progress:
        there = self.progress
        return replace(
            there,
            closed=set(there.closed),
            marks={minute: self._marks(minute) for minute in there.marks if minute <= marks_up_to},
            pieces=dict(there.pieces),
            reigns=dict(there.reigns),
        )

    def ends(self, _: ReadEnds) -> tuple[int, ...]:
        return tuple(log.end for log in self.logs)

    def marks(self, effect: ReadMarks) -> dict[int, Marks]:
        return {effect.minute: self._marks(effect.minute)}

    def found(self, _: ReadProgress) -> Progress:
        return self._found(self.progress.open_minute)

    def produce(self, effect: Produce) -> list[Produced]:
        """Receipts and dead letters; nobody reads them."""
        return [Produced(self.rows.shard, 0, 0)] * len(effect.messages)

    def _marks(self, minute: int) -> Marks:
        marks = self.progress.marks.get(minute) or Marks()
        return Marks(set(marks.fired), set(marks.removed))

    def record(self, effect: Record) -> bool:
        there, new = self.progress, effect.checkpoint
        if there.fence != effect.fence:
            return False
        self.checkpoints += 1
        for part in new.marks:
            marks = there.marks.setdefault(part.minute, Marks())
            marks.fired.update(part.fired)
            marks.removed.update(part.removed)
        for minute in new.closed:
            there.marks.pop(minute, None)
        there.closed = {minute for minute in (*there.closed, *new.closed) if minute >= new.open_minute}
        there.open_minute, there.dropped_minute = new.open_minute, new.dropped_minute
        there.offsets, there.last_checkpoint = new.offsets, new.number
        there.pieces = dict(new.pieces)
        for log, position in zip(self.logs, new.offsets, strict=True):
            log.trim(position)
        return True

    def close(self, effect: PutClosing) -> None:
        closing = effect.closing
        made = self.rows.count(closing.minute)
        self.accounts.close(closing.minute, made, closing.rows, closing.fired, closing.removed)

    # Rows.

    def page(self, effect: ReadPage) -> list[BucketRow]:
        minute, piece, limit = effect.minute, effect.piece, effect.limit
        rows = self._made(minute, effect.after, limit) if piece == 0 else []
        kept = self._kept.get(minute)
        if not kept:
            return rows
        full = len(rows) == limit
        for row in kept:
            point = row.due_ms, row.filing
            if row.piece == piece and point > effect.after and not (full and point > _point(rows[-1])):
                insort(rows, row, key=_point)
        return rows[:limit]

    def _made(self, minute: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        rows = self.rows
        dues = rows.dues(minute)
        start = rows.after(minute, after) if after[0] >= 0 else 0
        stop = min(len(dues), start + limit)
        filings, records = rows.filings(minute, start, stop), rows.records(minute, start, stop)
        if stop > (read_to := self._read_to.get(minute, 0)):
            self.accounts.submitted(minute, [record[KEY] for record in records[max(0, read_to - start) :]])
            self._read_to[minute] = stop
        made = [
            BucketRow(minute, 0, due_ms, filing, record)
            for due_ms, filing, record in zip(dues[start:stop], filings, records, strict=True)
        ]
        return made if self.hidden < 0 else [row for row in made if row.filing != self.hidden]

    def filings(self, effect: ReadFilings) -> list[BucketRow]:
        found = []
        for minute, due_ms, filing in effect.places:
            if self.rows.made(filing):
                record = self.rows.record(minute, self.rows.place(filing))
                found.append(BucketRow(minute, 0, due_ms, filing, record))
            else:
                found += [row for row in self._kept.get(minute, ()) if row.filing == filing]
        return found

    def look_up(self, effect: LookUp) -> list[TaskRow]:
        return [row for key in effect.keys if (row := self._tasks.get(key))]

    def write(self, effect: Write) -> None:
        for row in effect.rows:
            if isinstance(row, BucketRow):
                self._keep(row)
            elif isinstance(row, TaskRow):
                self._take_back(row)
                self._remember(row)

    def _keep(self, row: BucketRow) -> None:
        """Write-once: what comes again is the same filing under another fence."""
        if row.minute >= self._far:
            self.accounts.filed(self._far, row.record[KEY])
            return
        kept = self._kept.setdefault(row.minute, [])
        place = bisect_left(kept, _point(row), key=_point)
        if place < len(kept) and kept[place].filing == row.filing:
            kept[place] = row
        else:
            kept.insert(place, row)
            self.accounts.filed(row.minute, row.record[KEY])

    def _take_back(self, row: TaskRow) -> None:
        """A command that was obeyed takes the filing back to which the row pointed until now."""
        before = self._tasks.get(row.key)
        if before is None or before.submit_pos == row.submit_pos or before.state != "scheduled":
            return
        moved = row.filing != before.filing
        if moved or row.state == "cancelled":
            self.accounts.taken_back(before.minute, row.key.encode(), moved=moved)

    def _remember(self, row: TaskRow) -> None:
        if row.minute >= self._far:
            return
        before = self._tasks.get(row.key)
        if before is None or before.minute != row.minute:
            self._asked.setdefault(row.minute, []).append(row.key)
        self._tasks[row.key] = row

    def drop(self, effect: Drop) -> None:
        """A bucket's rows go at once, task rows a little later."""
        self._kept.pop(effect.minute, None)
        self._read_to.pop(effect.minute, None)
        self.rows.forget(effect.minute)
        for minute in [minute for minute in self._asked if minute <= effect.minute - KNOWN_MINUTES]:
            for key in self._asked.pop(minute):
                if (row := self._tasks.get(key)) and row.minute <= minute:
                    del self._tasks[key]

    def held(self) -> int:
        """How many rows are kept: a number that must not grow with the day."""
        return len(self._tasks) + sum(map(len, self._kept.values()))


def _point(row: BucketRow) -> tuple[int, int]:
    return row.due_ms, row.filing


_ANSWERS: dict[type, Callable[[Shelf, Any], object]] = {
    Claim: Shelf.claim,
    ReadEnds: Shelf.ends,
    LookUp: Shelf.look_up,
    ReadFilings: Shelf.filings,
    ReadLetters: lambda *_: [],
    ReadDue: lambda *_: [],
    ReadMarks: Shelf.marks,
    ReadPage: Shelf.page,
    ReadProgress: Shelf.found,
    Write: Shelf.write,
    Record: Shelf.record,
    PutClosing: Shelf.close,
    Drop: Shelf.drop,
    Produce: Shelf.produce,
}
