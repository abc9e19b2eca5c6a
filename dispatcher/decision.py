"""What follows from one command or outcome, given what the store knows of its key?

Pure and without memory: the same item and the same facts give the same decision, so a replay gives what the first
application gave (rule D). The applier carries decisions out. The rules named here are those of DESIGN.md, section 4.
"""

from msgspec import Struct
from msgspec.structs import replace

from ..broker.command import Cancel, Command, Discard, Redrive, Reschedule, Submit
from ..broker.outcome import Outcome
from ..broker.receipt import Answer
from ..store.port import Place
from ..store.position import NO_POSITION, POSITION_BITS, Log
from ..store.record import Filed, Options, decode_options, encode_headers, encode_options, pack, unpack, with_fence
from ..store.task import DeadLetter, State, TaskRow
from .intake import Item
from .retry import carried_record, delay_ms, ends_here

NOTE_MAX = 2_000
DISCARDED = "discarded"
_POSITION_FIELD = {Log.SUBMIT: "submit_pos", Log.FORWARDED: "forwarded_pos", Log.OUTCOMES: "outcome_pos"}


class Facts(Struct, frozen=True, gc=False):
    """What is known when an item is decided on.

    `gone`: the row's filing is fired, in flight, or its minute shut. `record`: the content of the row's filing, for
    what copies it. `letter`: the key's dead letter.
    """

    fence: int
    row: TaskRow | None = None
    gone: bool = False
    record: bytes | None = None
    letter: DeadLetter | None = None


class NewFiling(Struct, frozen=True, gc=False):
    """A filing to be made. `minute` is where it stands already, when it is written again (rule G)."""

    due_ms: int
    record: bytes
    minute: int | None = None


class Decision(Struct, gc=False, eq=False):
    """What is to be done for one item. Without a row nothing is written.

    `answer` goes out as a receipt if one was asked for by `receipt`. `remove` and `fired` are places to mark;
    `letter` is to be kept before the row says so, `settles` to be put away after. `resolve` says that the row's
    filing must not be in flight any more when the checkpoint is written (rule P).
    """

    item: Item
    row: TaskRow | None = None
    file: NewFiling | None = None
    remove: Place | None = None
    fired: Place | None = None
    letter: DeadLetter | None = None
    settles: DeadLetter | None = None
    answer: Answer | None = None
    receipt: str | None = None
    existing: bool = False
    resolve: bool = False


def decide(item: Item, facts: Facts) -> Decision:
    what, row = item.what, facts.row
    if isinstance(what, Outcome):
        return _outcome(item, what, facts)
    assert isinstance(what, Command)
    if row is None:
        return _first(item, what, facts)
    if position_in(row, item.log) >= item.position:
        return _again(item, facts, what.receipt)
    if _repeated(row, what.at.origin):
        return Decision(item)
    match what:
        case Submit():
            return _resubmit(item, what, row, facts)
        case Cancel():
            return _cancel(item, what, row, facts)
        case Reschedule():
            return _reschedule(item, what, row, facts)
        case Redrive():
            return _redrive(item, what, row, facts)
        case Discard():
            return _discard(item, what, row, facts)


def position_in(row: TaskRow, log: Log) -> int:
    """The last position of a log that was decided on for this row."""
    return int(getattr(row, _POSITION_FIELD[log]))


def place_of(row: TaskRow) -> Place:
    return row.minute, row.due_ms, row.filing


def needs_record(item: Item, row: TaskRow) -> bool:
    """Does deciding on this item take the content of the row's filing?"""
    if row.state != "scheduled" or not isinstance(item.what, Reschedule | Redrive):
        return False
    fresh = position_in(row, item.log) < item.position
    return isinstance(item.what, Reschedule) if fresh else row.filing == item.filing


def needs_letter(item: Item, row: TaskRow) -> bool:
    met_again = position_in(row, item.log) >= item.position
    return isinstance(item.what, Redrive | Discard) and (met_again or row.state == "dead")


def _repeated(row: TaskRow, origin: int) -> bool:
    """A command that was forwarded twice: its origin is at or below the last one applied from that shard's log."""
    last = row.forward_origin
    return origin != NO_POSITION and last >> POSITION_BITS == origin >> POSITION_BITS and origin <= last


def _first(item: Item, what: Command, facts: Facts) -> Decision:
    """Nothing is known of the key."""
    if not isinstance(what, Submit):
        return Decision(item, answer=Answer.UNKNOWN, receipt=what.receipt)
    filing, log, position = item.filing, item.log, item.position
    row = TaskRow(
        what.key,
        filing,
        filing,
        0,
        what.due_ms,
        "scheduled",
        1,
        what.queue,
        what.digest,
        submit_pos=position if log is Log.SUBMIT else NO_POSITION,
        forwarded_pos=position if log is Log.FORWARDED else NO_POSITION,
        forward_origin=what.at.origin,
        answer=_FIRST_ANSWER[log],
        updated_ms=item.time_ms,
    )
    file = NewFiling(what.due_ms, _submitted(what, filing, facts.fence))
    return Decision(item, row=row, file=file, answer=Answer.ACCEPTED, receipt=what.receipt)


def _again(item: Item, facts: Facts, receipt: str | None) -> Decision:
    """Rules R and G: a predecessor was here. Nothing new follows, but all of it is written again under my fence."""
    row = facts.row
    assert row is not None
    mine = row.filing == item.filing
    latest = position_in(row, item.log) == item.position
    if not (mine or latest):
        return Decision(item)
    decision = Decision(item, row=row, existing=True)
    if latest:
        decision.answer, decision.receipt = _answered(row, item.log), receipt
    if row.state == "scheduled" and mine:
        decision.file = NewFiling(row.due_ms, _written_again(item, row, facts), row.minute)
    elif row.state == "cancelled" and not facts.gone:
        decision.remove = place_of(row)
    elif row.state == "dead" and isinstance(item.what, Outcome) and row.note != DISCARDED:
        decision.letter = _letter(item, item.what, facts)
    if facts.letter and ((row.state == "scheduled" and mine) or (row.state == "dead" and row.note == DISCARDED)):
        decision.settles = facts.letter
    return decision


def _answered(row: TaskRow, log: Log) -> Answer | None:
    """What the last item of a log was told, for one that is met again.

    A row keeps one answer a log, for a new owner may meet the logs in another order than the one before: the answer
    of one log must not take the place of another's whose receipt is still owed.
    """
    answer = _answers(row)[log]
    return Answer(answer) if answer else None


def _answers(row: TaskRow) -> list[str]:
    return [*row.answer.split("@"), "", ""][: len(Log)]


_FIRST_ANSWER = {log: "@" * log + Answer.ACCEPTED for log in Log}


def _with_answer(row: TaskRow, log: Log, answer: Answer | None) -> str:
    answers = _answers(row)
    answers[log] = answer or ""
    return "@".join(answers).rstrip("@")


def _written_again(item: Item, row: TaskRow, facts: Facts) -> bytes:
    """The record of a filing that this item caused under an earlier reign."""
    if isinstance(item.what, Submit):
        return _submitted(item.what, item.filing, facts.fence)
    if isinstance(item.what, Outcome):
        return carried_record(item.what, row.attempt, facts.fence)
    # Rule A: the bucket row was acknowledged before the task row that points to it; rule Q kept its minute open.
    assert facts.record is not None, row
    return with_fence(facts.record, facts.fence)


def _resubmit(item: Item, what: Submit, row: TaskRow, facts: Facts) -> Decision:
    replaces = what.on_conflict == "replace"
    if row.digest == what.digest and not (replaces and row.state in {"cancelled", "expired", "dead"}):
        return _without_effect(item, row, Answer.DUPLICATE, what.receipt, resolve=False)
    if what.on_conflict == "keep":
        return _without_effect(item, row, Answer.KEPT, what.receipt)
    if not replaces:
        return _without_effect(item, row, Answer.ID_CONFLICT, what.receipt)
    if row.state == "done" or (row.state == "scheduled" and facts.gone):
        return _without_effect(item, row, Answer.TOO_LATE, what.receipt)
    new = replace(row, queue=what.queue, digest=what.digest)
    return _refile(item, new, what.due_ms, _submitted(what, item.filing, facts.fence), Answer.REPLACED, what.receipt)


def _cancel(item: Item, what: Cancel, row: TaskRow, facts: Facts) -> Decision:
    if row.state == "cancelled":
        return _without_effect(item, row, Answer.CANCELLED, what.receipt)
    if row.state != "scheduled":
        return _without_effect(item, row, Answer.TOO_LATE, what.receipt)
    if facts.gone:  # it runs, but is not tried again
        return _without_effect(item, replace(row, ended=True), Answer.TOO_LATE, what.receipt)
    return Decision(
        item,
        row=_decided(replace(row, state="cancelled"), item, Answer.CANCELLED),
        remove=place_of(row),
        answer=Answer.CANCELLED,
        receipt=what.receipt,
        existing=True,
    )


def _reschedule(item: Item, what: Reschedule, row: TaskRow, facts: Facts) -> Decision:
    if row.state != "scheduled" or facts.gone or facts.record is None:
        return _without_effect(item, row, Answer.TOO_LATE, what.receipt)
    record = _fresh(facts.record, item.filing, facts.fence)
    return _refile(item, row, what.due_ms, record, Answer.RESCHEDULED, what.receipt)


def _redrive(item: Item, what: Redrive, row: TaskRow, facts: Facts) -> Decision:
    if row.state != "dead" or facts.letter is None:
        return _without_effect(item, row, Answer.NOT_DEAD, what.receipt)
    record = _fresh(facts.letter.record, item.filing, facts.fence)
    decision = _refile(item, row, what.due_ms, record, Answer.REDRIVEN, what.receipt)
    decision.settles = facts.letter
    return decision


def _discard(item: Item, what: Discard, row: TaskRow, facts: Facts) -> Decision:
    if row.state != "dead" or facts.letter is None:
        return _without_effect(item, row, Answer.NOT_DEAD, what.receipt)
    decision = _without_effect(item, replace(row, note=DISCARDED), Answer.DISCARDED, what.receipt)
    decision.settles = facts.letter
    return decision


def _refile(item: Item, row: TaskRow, due_ms: int, record: bytes, answer: Answer, receipt: str | None) -> Decision:
    """A new version of a task that has a row: the old filing, if it still stands, is removed."""
    removed = place_of(row) if row.state == "scheduled" else None
    new = replace(row, filing=item.filing, origin=item.filing, due_ms=due_ms, state="scheduled", attempt=1, ended=False)
    return Decision(
        item,
        row=_decided(new, item, answer),
        file=NewFiling(due_ms, record),
        remove=removed,
        answer=answer,
        receipt=receipt,
        existing=True,
    )


def _without_effect(item: Item, row: TaskRow, answer: Answer, receipt: str | None, *, resolve: bool = True) -> Decision:
    """Rules S and P: the answer is written to the row too, and what it says is durable before it is given."""
    new = _decided(row, item, answer)
    return Decision(item, row=new, answer=answer, receipt=receipt, existing=True, resolve=resolve)


def _outcome(item: Item, what: Outcome, facts: Facts) -> Decision:
    row = facts.row
    if row is None:
        return Decision(item)  # its row is past its retention
    if row.outcome_pos >= item.position:
        return _again(item, facts, what.task.receipt)
    if row.state != "scheduled" or row.filing != what.filing:
        return Decision(item)  # a finish counts only for its own filing
    new = replace(row, outcome_pos=item.position, updated_ms=item.time_ms, note=_noted(row, what))
    decision = Decision(item, fired=place_of(row), receipt=what.task.receipt, existing=True)
    if what.kind == "done":
        return _settle(decision, new, "done", Answer.DONE)
    if what.kind == "expired":
        return _settle(decision, new, "expired", Answer.EXPIRED)
    if ends_here(what, ended=row.ended):
        if row.ended:
            return _settle(decision, new, "cancelled", None)
        decision.letter = _letter(item, what, facts)
        return _settle(decision, new, "dead", Answer.DEAD)
    due_ms = item.time_ms + delay_ms(what)
    attempt = row.attempt + (what.kind == "failed")
    answer = _with_answer(row, Log.OUTCOMES, None)
    decision.row = replace(new, filing=item.filing, due_ms=due_ms, attempt=attempt, answer=answer)
    decision.file = NewFiling(due_ms, carried_record(what, attempt, facts.fence))
    decision.receipt = None
    return decision


def _settle(decision: Decision, row: TaskRow, state: State, answer: Answer | None) -> Decision:
    decision.row = replace(row, state=state, answer=_with_answer(row, Log.OUTCOMES, answer))
    decision.answer = answer
    return decision


def _decided(row: TaskRow, item: Item, answer: Answer) -> TaskRow:
    """The row with this item as the last one decided on in its log."""
    changes: dict[str, object] = {_POSITION_FIELD[item.log]: item.position}
    if isinstance(item.what, Command) and item.what.at.origin != NO_POSITION:
        changes["forward_origin"] = item.what.at.origin
    return replace(row, answer=_with_answer(row, item.log, answer), updated_ms=item.time_ms, **changes)


def _submitted(what: Submit, filing: int, fence: int) -> bytes:
    return pack(
        Filed(
            fence,
            filing,
            1,
            what.priority,
            what.expires_ms,
            what.key,
            what.queue,
            encode_options(Options(what.max_attempts, what.timeout_ms, 0, what.retry, what.receipt)),
            encode_headers(what.headers),
            what.payload,
        )
    )


def _fresh(record: bytes, origin: int, fence: int) -> bytes:
    """The same content as a new version: its first attempt, none started."""
    filed = unpack(record)
    options = encode_options(replace(decode_options(filed.options), starts=0))
    return pack(replace(filed, fence=fence, origin=origin, attempt=1, options=options))


def _letter(item: Item, what: Outcome, facts: Facts) -> DeadLetter:
    assert facts.row is not None
    record = carried_record(what, facts.row.attempt, facts.fence)
    return DeadLetter(what.key, what.filing, what.queue, what.reason, what.starts, item.time_ms, record, facts.row.note)


def _noted(row: TaskRow, what: Outcome) -> str:
    """The row's note, and what became of this attempt: the history that a dead letter shows, over redrives too."""
    if not what.reason:
        return row.note
    return f"{row.note}\nattempt {row.attempt}: {what.reason}"[-NOTE_MAX:].lstrip("\n")
