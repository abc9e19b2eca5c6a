"""What follows from one command or outcome, given what the store knows of its key."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minutewheel.broker.command import Cancel, Command, Discard, Redrive, Reschedule, Standing, Submit
from minutewheel.broker.outcome import Outcome
from minutewheel.broker.receipt import Answer
from minutewheel.broker.wire import Record
from minutewheel.dispatcher.decision import (
    NOTE_MAX,
    Decision,
    Facts,
    NewFiling,
    decide,
    needs_letter,
    needs_record,
    place_of,
    position_in,
)
from minutewheel.dispatcher.intake import Item
from minutewheel.store.position import NO_POSITION, POSITION_BITS, Log, filing_number, pack_position
from minutewheel.store.record import Options, decode_options, encode_options, fence_of, unpack
from minutewheel.store.task import DeadLetter, State, TaskRow
from msgspec.structs import replace

pytestmark = pytest.mark.pure

FENCE = 7
NOW_MS = 1_790_000_000_000
DUE_MS = NOW_MS + 60_000
KEY = "acme/1"
STATES: tuple[State, ...] = ("scheduled", "done", "dead", "cancelled", "expired")
OPTIONS = Options(max_attempts=3, receipt="r")


def position(offset: int) -> int:
    return pack_position(1, offset)


def item(what: Any, offset: int = 10, log: Log = Log.SUBMIT) -> Item:
    return Item(log, position(offset), NOW_MS, what, Record("t", 0, offset, NOW_MS, None, None))


def standing(offset: int = 10, log: Log = Log.SUBMIT, origin: int = NO_POSITION) -> Standing:
    return Standing(log, position(offset), NOW_MS, origin)


def submit(offset: int = 10, log: Log = Log.SUBMIT, origin: int = NO_POSITION, **more: Any) -> Item:
    given: dict[str, Any] = {"digest": b"d1", "queue": "mail", "due_ms": DUE_MS, "payload": b"p1", "receipt": "r"}
    return item(Submit(at=standing(offset, log, origin), key=KEY, **given | more), offset, log)


def cancel(offset: int = 10) -> Item:
    return item(Cancel(at=standing(offset), key=KEY, receipt="r"), offset)


def reschedule(offset: int = 10) -> Item:
    return item(Reschedule(at=standing(offset), key=KEY, due_ms=DUE_MS + 5, receipt="r"), offset)


def redrive(offset: int = 10) -> Item:
    return item(Redrive(at=standing(offset), key=KEY, due_ms=DUE_MS + 5, receipt="r"), offset)


def discard(offset: int = 10) -> Item:
    return item(Discard(at=standing(offset), key=KEY, receipt="r"), offset)


FILING = filing_number(Log.SUBMIT, position(2))
"""The filing of the row that most tests begin with: that of the submission at offset 2."""


def outcome(kind: str = "failed", offset: int = 10, **more: Any) -> Item:
    options = encode_options(more.pop("task", OPTIONS))
    given: dict[str, Any] = {"filing": FILING, "origin": FILING, "starts": 1, "payload": b"p1", "queue": "mail"} | more
    what = Outcome(kind=kind, key=KEY, shard=0, minute=29, options=options, **given)
    return item(what, offset, Log.OUTCOMES)


def row(state: State = "scheduled", **more: Any) -> TaskRow:
    given: dict[str, Any] = {"minute": 29, "due_ms": DUE_MS, "attempt": 1, "queue": "mail", "digest": b"d1"}
    given |= {"filing": FILING, "submit_pos": position(2), "answer": "accepted", "updated_ms": 5}
    return TaskRow(key=KEY, origin=FILING, state=state, **given | more)


BUCKET_RECORD = decide(submit(2), Facts(3)).file.record  # type: ignore[union-attr]
LETTER = DeadLetter(KEY, FILING, "mail", "no", 3, NOW_MS, BUCKET_RECORD, "attempt 1: no")


def facts(one: TaskRow | None, *, gone: bool = False) -> Facts:
    letter = LETTER if one and one.state == "dead" else None
    return Facts(FENCE, one, gone, BUCKET_RECORD, letter)


# A first submission.


def test_a_new_task_is_filed_and_accepted() -> None:
    decision = decide(submit(priority=1, expires_ms=9, max_attempts=4), facts(None))
    filing = filing_number(Log.SUBMIT, position(10))
    assert decision.row == TaskRow(
        KEY,
        filing,
        filing,
        0,
        DUE_MS,
        "scheduled",
        1,
        "mail",
        b"d1",
        position(10),
        answer="accepted",
        updated_ms=NOW_MS,
    )
    assert decision.file is not None
    assert (decision.file.due_ms, decision.file.minute) == (DUE_MS, None)
    filed = unpack(decision.file.record)
    assert (filed.fence, filed.origin, filed.attempt, filed.priority, filed.expires_ms) == (FENCE, filing, 1, 1, 9)
    assert (filed.key, filed.queue, filed.payload) == (KEY, "mail", b"p1")
    assert decode_options(filed.options).max_attempts == 4
    assert (decision.answer, decision.receipt) == (Answer.ACCEPTED, "r")
    assert not decision.existing  # no checkpoint is waited for: nothing that exists is changed


@pytest.mark.parametrize("command", [cancel(), reschedule(), redrive(), discard()])
def test_what_nobody_knows_is_unknown_and_nothing_is_written(command: Item) -> None:
    decision = decide(command, facts(None))
    assert (decision.answer, decision.row, decision.file) == (Answer.UNKNOWN, None, None)


# The table. Columns: what is answered, and what happens to the task: "files", "removes", both, or nothing.

LATE = Answer.TOO_LATE
OTHER = {"digest": b"d2", "payload": b"p2"}
TABLE: list[tuple[Item, str, bool, Answer, str]] = []


def case(command: Item, states: str, gone: str, answer: Answer, effect: str = "") -> None:
    """`states` by their first letters (sdDcx: scheduled, done, Dead, cancelled, eXpired); `gone` y, n or both."""
    names = {"s": "scheduled", "d": "done", "D": "dead", "c": "cancelled", "x": "expired"}
    TABLE.extend((command, names[state], one == "y", answer, effect) for state in states for one in gone)


case(submit(), "sdDcx", "yn", Answer.DUPLICATE, "nothing")
case(submit(on_conflict="keep"), "sdDcx", "yn", Answer.DUPLICATE, "nothing")
case(submit(on_conflict="replace"), "sd", "yn", Answer.DUPLICATE, "nothing")
case(submit(on_conflict="replace"), "Dcx", "yn", Answer.REPLACED, "files")
case(submit(**OTHER), "sdDcx", "yn", Answer.ID_CONFLICT)
case(submit(on_conflict="keep", **OTHER), "sdDcx", "yn", Answer.KEPT)
case(submit(on_conflict="replace", **OTHER), "s", "n", Answer.REPLACED, "removes files")
case(submit(on_conflict="replace", **OTHER), "s", "y", LATE)
case(submit(on_conflict="replace", **OTHER), "d", "yn", LATE)
case(submit(on_conflict="replace", **OTHER), "Dcx", "yn", Answer.REPLACED, "files")
case(cancel(), "s", "n", Answer.CANCELLED, "removes cancelled")
case(cancel(), "s", "y", LATE, "ended")
case(cancel(), "dDx", "yn", LATE)
case(cancel(), "c", "yn", Answer.CANCELLED)
case(reschedule(), "s", "n", Answer.RESCHEDULED, "removes files")
case(reschedule(), "s", "y", LATE)
case(reschedule(), "dDcx", "yn", LATE)
case(redrive(), "D", "yn", Answer.REDRIVEN, "files")
case(redrive(), "sdcx", "yn", Answer.NOT_DEAD)
case(discard(), "D", "yn", Answer.DISCARDED)
case(discard(), "sdcx", "yn", Answer.NOT_DEAD)


def named(one: object) -> str:
    if isinstance(one, Item):
        conflict = f" {one.what.on_conflict} {one.what.digest!r}" if isinstance(one.what, Submit) else ""
        return type(one.what).__name__.lower() + conflict
    return str(one)


@pytest.mark.parametrize(("command", "state", "gone", "answer", "effect"), TABLE, ids=named)
def test_each_command_over_each_state(command: Item, state: State, gone: bool, answer: Answer, effect: str) -> None:
    before = row(state)
    decision = decide(command, facts(before, gone=gone))
    assert (decision.answer, decision.receipt) == (answer, "r")
    if effect == "nothing":  # a duplicate changes nothing of the task, and the receipt names the present state
        assert (decision.file, decision.remove, decision.fired, decision.letter) == (None, None, None, None)
        after = decision.row or before
        kept = {"submit_pos": before.submit_pos, "answer": before.answer, "updated_ms": before.updated_ms}
        assert replace(after, **kept) == before
        return
    after = decision.row
    assert after is not None
    assert decision.existing  # rule N
    assert (after.submit_pos, after.answer, after.updated_ms) == (position(10), answer, NOW_MS)  # rule S
    assert decision.remove == (place_of(before) if "removes" in effect else None)
    assert (decision.file is not None) == ("files" in effect)
    assert after.ended == (effect == "ended")
    assert decision.fired is None
    if "files" in effect:
        assert (after.filing, after.origin) == (command.filing, command.filing)
        assert (after.state, after.attempt) == ("scheduled", 1)
        assert not decision.resolve
    else:
        assert (after.filing, after.due_ms) == (before.filing, before.due_ms)
        assert after.state == ("cancelled" if "cancelled" in effect else before.state)
        assert decision.resolve == ("removes" not in effect)  # rule P


def test_the_table_has_each_command_over_each_state_once() -> None:
    cells = [(named(command), state, gone) for command, state, gone, _, _ in TABLE]
    assert len(cells) == len(set(cells)) == 10 * len(STATES) * 2


# What is filed anew.


def test_a_replacement_has_the_new_content_and_counts_from_one() -> None:
    command = submit(on_conflict="replace", due_ms=DUE_MS + 9, queue="push", **OTHER)
    decision = decide(command, facts(row(attempt=3, ended=True)))
    assert decision.row is not None
    assert decision.file is not None
    assert (decision.row.digest, decision.row.queue, decision.row.due_ms) == (b"d2", "push", DUE_MS + 9)
    assert (decision.row.attempt, decision.row.ended) == (1, False)
    filed = unpack(decision.file.record)
    assert (filed.payload, filed.queue, filed.fence, filed.origin) == (b"p2", "push", FENCE, command.filing)


def test_a_rescheduled_task_has_the_content_of_the_old_filing_under_a_new_number() -> None:
    command = reschedule()
    decision = decide(command, facts(row()))
    assert decision.file is not None
    old, new = unpack(BUCKET_RECORD), unpack(decision.file.record)
    assert (new.payload, new.key, new.queue, new.headers) == (old.payload, old.key, old.queue, old.headers)
    assert (new.fence, new.origin, new.attempt) == (FENCE, command.filing, 1)
    assert decision.row is not None
    assert (decision.row.digest, decision.file.due_ms) == (b"d1", DUE_MS + 5)


def test_a_reschedule_whose_content_is_gone_is_too_late() -> None:
    decision = decide(reschedule(), Facts(FENCE, row()))
    assert (decision.answer, decision.file, decision.remove) == (LATE, None, None)


def test_a_redriven_task_starts_a_fresh_count_and_keeps_its_history() -> None:
    """Case 47."""
    started = unpack(BUCKET_RECORD)
    options = encode_options(Options(max_attempts=3, starts=3, receipt="r"))
    died = decide(outcome(starts=3), facts(row(attempt=3, note="attempt 1: no\nattempt 2: no")))
    assert died.letter is not None
    assert died.letter.attempts == 3
    assert died.row is not None
    assert decode_options(unpack(died.letter.record).options) == decode_options(options)
    command = redrive(11)
    decision = decide(command, Facts(FENCE, died.row, letter=died.letter))
    assert decision.file is not None
    assert decision.row is not None
    filed = unpack(decision.file.record)
    assert decode_options(filed.options).starts == 0
    assert (filed.attempt, filed.payload, filed.origin) == (1, started.payload, command.filing)
    assert decision.row.note == died.row.note != ""
    assert decision.settles == died.letter  # it is listed no more
    assert decision.letter is None


def test_a_discarded_letter_is_listed_no_more_and_the_task_stays_dead() -> None:
    decision = decide(discard(), facts(row("dead")))
    assert (decision.settles, decision.letter) == (LETTER, None)
    assert decision.row is not None
    assert (decision.row.state, decision.row.note) == ("dead", "discarded")
    again = decide(discard(), Facts(FENCE, decision.row, letter=LETTER))
    assert (again.settles, again.answer) == (LETTER, Answer.DISCARDED)


@pytest.mark.parametrize("command", [redrive(), discard()])
def test_a_dead_task_whose_letter_was_put_away_is_not_dead_enough(command: Item) -> None:
    assert decide(command, Facts(FENCE, row("dead"))).answer is Answer.NOT_DEAD


# Outcomes.


@pytest.mark.parametrize(
    ("kind", "state", "answer"),
    [("done", "done", Answer.DONE), ("expired", "expired", Answer.EXPIRED), ("unpublishable", "dead", Answer.DEAD)],
)
def test_what_ends_a_task(kind: str, state: str, answer: Answer) -> None:
    before = row()
    decision = decide(outcome(kind, retryable=False, reason="because"), facts(before, gone=True))
    assert decision.row is not None
    assert (decision.row.state, decision.row.outcome_pos) == (state, position(10))
    assert (decision.answer, decision.receipt) == (answer, "r")
    assert decision.fired == place_of(before)
    assert (decision.file, decision.remove) == (None, None)
    assert (decision.letter is not None) == (state == "dead")
    if decision.letter:
        assert (decision.letter.reason, decision.letter.filing) == ("because", FILING)
        assert unpack(decision.letter.record).payload == b"p1"


@given(st.integers(1, 8), st.integers(0, 12))
def test_case_47_a_task_has_as_many_starts_as_it_may_have(maximum: int, starts: int) -> None:
    task = Options(max_attempts=maximum, receipt="r")
    decision = decide(outcome(starts=starts, task=task, delay_ms=50), facts(row(), gone=True))
    assert decision.row is not None
    if starts < maximum:
        assert (decision.row.state, decision.row.attempt) == ("scheduled", 2)
        assert decision.answer is None
        assert decision.receipt is None
    else:
        assert (decision.row.state, decision.answer) == ("dead", Answer.DEAD)


def test_case_47_a_whole_life_of_three_starts() -> None:
    """Each failure counts, with the handler's own delay too; the third is the last."""
    state = row()
    for starts in (1, 2, 3):
        delay_ms = 7 if starts == 2 else None
        said = outcome(offset=10 + starts, filing=state.filing, starts=starts, reason=f"no {starts}", delay_ms=delay_ms)
        decision = decide(said, facts(state, gone=True))
        assert decision.row is not None
        state = decision.row
    assert (state.state, state.attempt) == ("dead", 3)
    assert state.note == "attempt 1: no 1\nattempt 2: no 2\nattempt 3: no 3"


def test_case_47_a_snooze_costs_nothing() -> None:
    """A hundred of them: it is still the first attempt, and no start of it was used up by them."""
    state = row()
    for offset in range(10, 110):
        said = outcome("snoozed", offset, filing=state.filing, starts=0, delay_ms=5)
        decision = decide(said, facts(state, gone=True))
        assert decision.row is not None
        assert decision.file is not None
        state = decision.row
    assert (state.state, state.attempt) == ("scheduled", 1)
    assert decode_options(unpack(decision.file.record).options).starts == 0
    assert unpack(decision.file.record).attempt == 1


@given(st.integers(0, 10**7))
def test_a_retry_is_due_so_long_after_the_time_of_its_outcome(delay_ms: int) -> None:
    said = outcome(delay_ms=delay_ms)
    decision = decide(said, facts(row(), gone=True))
    assert decision.file is not None
    assert decision.row is not None
    assert decision.file.due_ms == decision.row.due_ms == NOW_MS + delay_ms
    assert (decision.row.filing, decision.row.origin) == (said.filing, FILING)
    assert decision.file.minute is None
    filed = unpack(decision.file.record)
    assert (filed.origin, filed.attempt, filed.fence, filed.payload) == (FILING, 2, FENCE, b"p1")
    assert decode_options(filed.options).starts == 1


@pytest.mark.parametrize("kind", ["failed", "snoozed"])
def test_a_task_that_was_cancelled_too_late_is_not_tried_again(kind: str) -> None:
    decision = decide(outcome(kind, starts=1), facts(row(ended=True), gone=True))
    assert decision.row is not None
    assert (decision.row.state, decision.answer, decision.file, decision.letter) == ("cancelled", None, None, None)


def test_a_task_that_was_cancelled_too_late_may_still_be_done() -> None:
    decision = decide(outcome("done"), facts(row(ended=True), gone=True))
    assert decision.answer is Answer.DONE


@pytest.mark.parametrize("state", STATES[1:])
def test_an_outcome_of_a_task_that_is_over_does_nothing(state: State) -> None:
    assert is_nothing(decide(outcome(), facts(row(state))))


def test_a_finish_counts_only_for_its_own_filing() -> None:
    assert is_nothing(decide(outcome("done", filing=FILING + 1), facts(row())))


def test_an_outcome_of_a_task_that_is_past_its_retention_does_nothing() -> None:
    assert is_nothing(decide(outcome(), facts(None)))


def test_the_history_is_bounded_and_keeps_the_latest() -> None:
    state = row(note="x" * NOTE_MAX)
    decision = decide(outcome(reason="the last"), facts(state))
    assert decision.row is not None
    assert len(decision.row.note) <= NOTE_MAX
    assert decision.row.note.endswith("attempt 1: the last")


def is_nothing(decision: Decision) -> bool:
    return (
        decision.row is decision.file is decision.remove is decision.fired is decision.letter is decision.answer is None
    )


# Replay.

COMMANDS = st.builds(
    lambda make, offset: make(offset),
    st.sampled_from(
        (
            submit,
            lambda offset: submit(offset, on_conflict="replace", **OTHER),
            lambda offset: submit(offset, on_conflict="replace", digest=b"d3", payload=b"p3"),
            cancel,
            reschedule,
            redrive,
            discard,
            lambda offset: outcome("failed", offset, starts=1),
            lambda offset: outcome("failed", offset, starts=3),
            lambda offset: outcome("done", offset),
            lambda offset: outcome("snoozed", offset),
        )
    ),
    st.integers(3, 40),
)


def same(one: Decision, other: Decision) -> bool:
    names = ("row", "file", "remove", "fired", "letter", "settles", "answer", "receipt", "existing", "resolve")
    return all(getattr(one, name) == getattr(other, name) for name in names)


@given(COMMANDS, st.sampled_from((None, *STATES)), st.booleans())
def test_the_same_item_and_the_same_facts_give_the_same_decision(
    command: Item, state: State | None, gone: bool
) -> None:
    known = facts(row(state) if state else None, gone=gone)
    assert same(decide(command, known), decide(command, known))


@settings(max_examples=150)
@given(COMMANDS, st.sampled_from((None, *STATES)), st.booleans(), st.booleans())
def test_a_replay_writes_the_same_rows_under_its_own_fence_and_says_the_same(
    command: Item, state: State | None, gone: bool, moved: bool
) -> None:
    """Rules D, G and R: what the first owner decided, the second finds in the row and writes again."""
    before = row(state) if state else None
    first = decide(command, facts(before, gone=gone))
    if first.row is None:
        return
    placed = first.row
    if first.file:
        placed = replace(first.row, minute=31)
    later = 9 if moved else FENCE
    record = first.file.record if first.file else None
    again = decide(command, Facts(later, placed, first.fired is not None, record, first.letter))
    assert again.row == placed
    assert again.answer == first.answer
    if first.answer:
        assert again.receipt == first.receipt
    unmarked = placed.state == "cancelled" and not first.fired
    assert again.remove == (place_of(placed) if unmarked else None)  # it may not have been marked
    if first.file:
        assert again.file is not None
        assert (again.file.due_ms, again.file.minute) == (first.file.due_ms, 31)
        assert fence_of(again.file.record) == later
        if later == FENCE:
            assert again.file.record == first.file.record
        else:
            assert again.file.record[12:] == first.file.record[12:]
    else:
        assert again.file is None
    if placed.state == "dead" and isinstance(command.what, Outcome):
        assert first.letter is not None
        assert again.letter is not None
        assert unpack(again.letter.record).payload == unpack(first.letter.record).payload


def test_a_record_below_the_last_one_decided_on_says_nothing_and_files_only_its_own() -> None:
    """Rule R: the row's filing is the submission's, so its bucket row is written again; the answer was another's."""
    later = row(submit_pos=position(20), answer="id_conflict", minute=31)
    decision = decide(submit(2), facts(later))
    assert (decision.answer, decision.receipt) == (None, None)
    assert decision.file == NewFiling(later.due_ms, decision.file.record, 31) if decision.file else False
    assert decision.row == later
    assert is_nothing(decide(submit(9), facts(later)))


def test_a_cancel_met_again_marks_its_filing_again_unless_that_is_gone() -> None:
    cancelled = row("cancelled", submit_pos=position(10), answer="cancelled")
    assert decide(cancel(10), facts(cancelled)).remove == place_of(cancelled)
    assert decide(cancel(10), facts(cancelled, gone=True)).remove is None
    assert decide(cancel(10), facts(cancelled)).answer is Answer.CANCELLED


def test_what_one_log_was_told_does_not_take_the_place_of_what_another_was() -> None:
    """A new owner may meet the logs in another order: each is told again what it was told first."""
    first = decide(submit(10, **OTHER), facts(row())).row
    assert first is not None
    second = decide(submit(4, Log.FORWARDED, on_conflict="keep", **OTHER), facts(first)).row
    assert second is not None
    third = decide(outcome("done", 3), facts(second)).row
    assert third is not None
    assert decide(submit(10, **OTHER), facts(third)).answer is Answer.ID_CONFLICT
    assert decide(submit(4, Log.FORWARDED, on_conflict="keep", **OTHER), facts(third)).answer is Answer.KEPT
    assert decide(outcome("done", 3), facts(third)).answer is Answer.DONE


def test_positions_are_kept_by_log() -> None:
    known = row(submit_pos=position(30))
    assert decide(submit(10, Log.FORWARDED, **OTHER), facts(known)).answer is Answer.ID_CONFLICT
    assert not is_nothing(decide(outcome("done", 1), facts(known)))
    after = decide(submit(10, Log.FORWARDED, **OTHER), facts(known)).row
    assert after is not None
    assert [position_in(after, log) for log in Log] == [position(30), position(10), NO_POSITION]


# Forwarded commands.


def origin(partition: int, offset: int) -> int:
    return partition << POSITION_BITS | position(offset)


@pytest.mark.parametrize(
    ("partition", "offset", "repeated"), [(4, 5, True), (4, 4, True), (4, 6, False), (3, 5, False), (5, 1, False)]
)
def test_a_command_that_was_forwarded_twice_is_skipped(partition: int, offset: int, repeated: bool) -> None:
    known = row(forward_origin=origin(4, 5))
    decision = decide(submit(10, Log.FORWARDED, origin(partition, offset), **OTHER), facts(known))
    assert is_nothing(decision) == repeated
    if not repeated:
        assert decision.row is not None
        assert decision.row.forward_origin == origin(partition, offset)


def test_a_command_that_was_not_forwarded_leaves_the_last_origin_alone() -> None:
    decision = decide(submit(**OTHER), facts(row(forward_origin=origin(4, 5))))
    assert decision.row is not None
    assert decision.row.forward_origin == origin(4, 5)


# What deciding takes.


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("make", [submit, cancel, reschedule, redrive, discard])
def test_only_what_is_copied_is_read(make: Any, state: State) -> None:
    command: Command = make().what
    assert needs_record(make(), row(state)) == (isinstance(command, Reschedule) and state == "scheduled")
    assert needs_letter(make(), row(state)) == (isinstance(command, Redrive | Discard) and state == "dead")


@pytest.mark.parametrize("make", [reschedule, redrive])
def test_a_replay_reads_the_filing_that_it_made(make: Any) -> None:
    command = make()
    mine = row(filing=command.filing, submit_pos=position(10))
    assert needs_record(command, mine)
    assert not needs_record(command, row(submit_pos=position(10)))
