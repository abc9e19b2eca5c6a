"""How is a batch of commands and outcomes applied, so that a crash after any step loses nothing?

The one writer of the shard's rows, one batch at a time (rules U and X): look the keys up; decide; one checkpoint if
an existing row changes (rules M and N), the regular one, never an extra one; bucket rows (rule A); task rows;
remember what lies within the reach; then the teller has it, and the next batch comes. The batch grows with the
backlog: what costs is the number of statements, not of rows. What only ends a task is gathered until shortly before
the next record of progress is made anyway, for it needs one.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..broker.due import NotDue, parse_due
from ..broker.outcome import Outcome, outcome_of
from ..broker.wire import Record
from ..store.task import BucketRow, DeadLetter, PlainRow, TaskRow
from .activity import Steps, Until, insist
from .context import Context
from .decision import Decision, Facts, decide, needs_letter, needs_record, place_of
from .effects import LookUp, ReadDue, ReadFilings, ReadLetters, Write
from .intake import Item
from .teller import hand_over

LOOK_UP_MS = 100
"""So long before a record of progress the ends that it allows are taken, to be looked up."""


def applying(context: Context) -> Steps[None]:
    """The activity: for ever, batch after batch, while the shard takes any."""
    intake = context.intake
    while True:
        gathered_ms = context.relaxed.stop - LOOK_UP_MS
        yield Until(lambda: context.taking and (intake.ready() or _ends(context)), wake_ms=gathered_ms)
        context.applying = True
        batch = intake.take(context.limits.batch_max, ends=_ends(context))
        yield from _complete_outcomes(context, batch)
        decided = yield from _decide(context, [item for item in batch if item.decides])
        if any(decision.existing for decision in decided):
            if _unresolved(context, decided):
                yield Until(lambda decided=decided: not _unresolved(context, decided))  # type: ignore[misc]
            yield from context.checkpointed()
        yield from _write(context, decided)
        hand_over(context, batch, decided)
        context.applying = False


def _ends(context: Context) -> bool:
    """Are ends to be taken: is a record of progress near, or have enough come together?"""
    waiting = context.intake.ends
    return waiting > 0 and (waiting >= context.limits.batch_max or context.recording_soon(LOOK_UP_MS))


def _complete_outcomes(context: Context, batch: Iterable[Item]) -> Steps[None]:
    """Fetch the due records that foreign workers only name."""
    bare = [item for item in batch if isinstance(item.what, Outcome) and item.what.due_at and item.what.kind != "done"]
    if not bare:
        return
    places = [item.what.due_at for item in bare if isinstance(item.what, Outcome) and item.what.due_at]
    read: list[Record] = yield from insist(context.activities, ReadDue(places))
    found = {(record.topic, record.partition, record.offset): record for record in read}
    for item in bare:
        assert isinstance(item.what, Outcome)
        assert item.what.due_at
        item.what = _completed(item.what, found.get(item.what.due_at))


def _completed(outcome: Outcome, record: Record | None) -> Outcome:
    """The outcome as a complete cause. Without its record it can only end: there is nothing to file again."""
    try:
        delivered = parse_due(record) if record else None
    except NotDue:
        delivered = None
    if delivered is None or delivered.filing != outcome.filing:
        reason = f"{outcome.reason} (and the due record that it names is not there)"
        return replace(outcome, retryable=False, kind="failed", reason=reason, payload=b"")
    return outcome_of(
        delivered,
        outcome.kind,
        starts=outcome.starts,
        reason=outcome.reason,
        retryable=outcome.retryable,
        delay_ms=outcome.delay_ms,
    )


def _decide(context: Context, items: Sequence[Item]) -> Steps[list[Decision]]:
    """Look up, decide, and let the memory of the shard know at once what may not fire any more."""
    if not items:
        return []
    rows = yield from _rows(context, [item.key for item in items])
    records, letters = yield from _contents(context, items, rows)
    decided = []
    for item in items:
        row = rows.get(item.key)
        facts = Facts(context.fence, row, _gone(context, row), records.get(item.key), letters.get(item.key))
        decision = decide(item, facts)
        _mark(context, decision)
        decided.append(decision)
    return decided


def _rows(context: Context, keys: Sequence[str]) -> Steps[dict[str, TaskRow]]:
    """What stands in the store: what this reign wrote last is known, the rest is looked up."""
    rows = {row.key: row for row in context.recent.rows(keys)}
    if unknown := [key for key in keys if key not in rows]:
        found: list[TaskRow] = yield from insist(context.activities, LookUp(unknown))
        rows |= {row.key: row for row in found}
    return rows


def _contents(
    context: Context, items: Iterable[Item], rows: dict[str, TaskRow]
) -> Steps[tuple[dict[str, bytes], dict[str, DeadLetter]]]:
    """Read what is copied: bucket rows for reschedules, letters for redrives."""
    known = [(item, rows[item.key]) for item in items if item.key in rows]
    places = {place_of(row): row.key for item, row in known if needs_record(item, row)}
    keys = [row.key for item, row in known if needs_letter(item, row)]
    records: dict[str, bytes] = {}
    if places:
        found: list[BucketRow] = yield from insist(context.activities, ReadFilings(list(places)))
        records = {places[row.minute, row.due_ms, row.filing]: row.record for row in found}
    letters: dict[str, DeadLetter] = {}
    if keys:
        read: list[DeadLetter] = yield from insist(context.activities, ReadLetters(keys))
        letters = {letter.key: letter for letter in read}
    return records, letters


def _gone(context: Context, row: TaskRow | None) -> bool:
    """Has the row's filing left, or can nobody say any more that it has not?"""
    if row is None:
        return False
    if kind := context.journal.kind(row.minute, row.filing):
        return kind == "fired"
    return row.filing in context.memory.firing or context.journal.shut(row.minute) or context.doubtful(row)


def _mark(context: Context, decision: Decision) -> None:
    if decision.remove is None and decision.fired is None:
        return
    for place, kind in ((decision.remove, "removed"), (decision.fired, "fired")):
        if place is None:
            continue
        context.memory.remove(place)
        if kind == "removed":
            context.journal.touch(place[0], decision.item.filing)
            context.journal.mark(place[0], [place[2]], "removed")
        else:
            context.journal.mark(place[0], [place[2]], "fired")


def _unresolved(context: Context, decided: Iterable[Decision]) -> bool:
    """Rule P: what was answered "too late" must be marked as fired, durably, before it is said."""
    firing = context.memory.firing
    return any(decision.resolve and decision.row and decision.row.filing in firing for decision in decided)


def _write(context: Context, decided: Sequence[Decision]) -> Steps[None]:
    """Bucket rows and letters, then task rows, then the memory of the shard."""
    filed = [(decision, _placed(context, decision)) for decision in decided if decision.file]
    letters: list[PlainRow] = [decision.letter for decision in decided if decision.letter]
    yield from _put(context, [*(row for _, row in filed), *letters])
    rows = [decision.row for decision in decided if decision.row]
    yield from _put(context, rows)
    context.recent.written(rows)
    yield from _put(context, [replace(decision.settles, record=b"") for decision in decided if decision.settles])
    for decision, row in filed:
        context.filed(row.minute)
        context.intake.remembered(decision.item.filing)
        if context.journal.kind(row.minute, row.filing) is None and not context.journal.shut(row.minute):
            context.memory.remember(row)


def _placed(context: Context, decision: Decision) -> BucketRow:
    """Find the filing its minute: where it stands already, or the first that is not shut (rule Z)."""
    file, limits = decision.file, context.limits
    assert file is not None
    assert decision.row is not None
    minute = file.minute
    if minute is None or context.journal.shut(minute):
        minute = context.journal.place(file.due_ms)
    context.begin_filing(minute)
    filing = decision.row.filing
    context.journal.touch(minute, decision.item.filing)
    piece = context.journal.piece(minute, len(file.record), limits.piece_rows_max, limits.piece_bytes_max)
    decision.row = replace(decision.row, minute=minute)
    return BucketRow(minute, piece, file.due_ms, filing, file.record)


def _put(context: Context, rows: Sequence[PlainRow]) -> Steps[None]:
    if rows:
        yield from insist(context.activities, Write(context.journal.timestamp(), rows))
