"""What a reign has finished, what of it is recorded, and which rows count."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from minutewheel.broker.command import Code, Rejection, Standing
from minutewheel.broker.port import Fetched
from minutewheel.broker.wire import Record
from minutewheel.dispatcher.intake import Intake, Item
from minutewheel.dispatcher.journal import Journal
from minutewheel.store.position import Log, filing_number, pack_position, write_timestamp
from minutewheel.store.progress import Checkpoint, Closing, Marks, Progress, mix

pytestmark = pytest.mark.pure

OPEN = 29_833_333
FENCE = 5
STARTS = (pack_position(1, 0),) * 3


def filing(offset: int, log: Log = Log.SUBMIT) -> int:
    return filing_number(log, pack_position(1, offset))


def progress(**more: Any) -> Progress:
    given: dict[str, Any] = {"open_minute": OPEN, "dropped_minute": OPEN - 1, "offsets": STARTS} | more
    return Progress(shard=3, fence=FENCE, member="a", **given)


def refused(log: Log, record: Record, incarnation: int) -> list[Item]:
    """Every record holds one item; which, is all the same here."""
    position = pack_position(incarnation, record.offset)
    return [Item(log, position, 0, Rejection(Standing(log, position, 0), Code.EMPTY, ""), record)]


def journal(**more: Any) -> tuple[Journal, Intake]:
    intake = Intake(STARTS, refused)
    return Journal(progress(**more), FENCE, intake), intake


def deliver(intake: Intake, log: Log, end: int) -> None:
    start = intake.readers[log].next_position - STARTS[log] >> 14
    records = [Record("t", 0, offset, 0, None, None) for offset in range(start, end)]
    intake.deliver(log, Fetched(records, end, end, 1))


def apply(intake: Intake, log: Log, end: int) -> None:
    deliver(intake, log, end)
    intake.done(intake.take(1_000))


def checkpoint(one: Journal, closable: Any = ()) -> Checkpoint:
    built = one.build(closable)
    one.recorded(built)
    return built


# Minutes.


def test_a_filing_is_placed_in_the_first_minute_that_is_not_shut() -> None:
    one, _ = journal(closed={OPEN + 1, OPEN + 2})
    assert one.place(OPEN * 60_000 + 59_999) == OPEN
    assert one.place((OPEN - 500) * 60_000) == OPEN
    assert one.place((OPEN + 1) * 60_000) == OPEN + 3
    one.prove(OPEN, 0)
    one.build([OPEN])
    assert one.place(OPEN * 60_000) == OPEN + 3  # what is being closed takes nothing any more


@given(st.sets(st.integers(0, 12)), st.integers(-3, 15))
def test_the_place_is_the_lowest_that_may_be(closed: set[int], due: int) -> None:
    one, _ = journal(closed={OPEN + n for n in closed})
    place = one.place((OPEN + due) * 60_000)
    assert place - OPEN == next(n for n in range(max(0, due), 40) if n not in closed)


@pytest.mark.parametrize(
    ("sizes", "full"),
    [([10] * 3, False), ([10] * 4, True), ([60, 40], False), ([60, 41], True), ([5_000], False), ([5_000, 1], True)],
)
def test_a_bucket_gets_another_piece_when_the_last_is_full_in_rows_or_bytes(sizes: list[int], full: bool) -> None:
    one, _ = journal()
    assert [one.piece(OPEN, size, 3, 100) for size in sizes] == [0] * len(sizes)
    assert one.wanted == full
    assert dict(one.build([]).pieces) == ({OPEN: 2} if full else {})


def test_no_row_goes_into_a_piece_that_no_checkpoint_knows() -> None:
    """Else nobody would read it, nor drop it."""
    one, _ = journal(pieces={OPEN: 3})
    assert [one.piece(OPEN, 10, 2, 1_000) for _ in range(5)] == [2] * 5
    built = one.build([])
    assert dict(built.pieces) == {OPEN: 4}
    assert one.piece(OPEN, 10, 2, 1_000) == 2
    one.recorded(built)
    assert [one.piece(OPEN, 10, 2, 1_000) for _ in range(2)] == [3, 3]
    assert not one.wanted
    one.piece(OPEN, 10, 2, 1_000)
    assert one.wanted


# Marks.


def test_the_first_mark_of_a_filing_stands() -> None:
    one, _ = journal(marks={OPEN: Marks({filing(1)}, {filing(2)})})
    one.mark(OPEN, [filing(1), filing(3)], "removed")
    one.mark(OPEN, [filing(2), filing(3), filing(4)], "fired")
    assert {n: one.kind(OPEN, filing(n)) for n in range(1, 6)} == {
        1: "fired",
        2: "removed",
        3: "removed",
        4: "fired",
        5: None,
    }
    assert one.unrecorded == 2
    (new,) = one.build([]).marks
    assert (new.fired, new.removed) == ((filing(4),), (filing(3),))


def test_marks_that_were_read_later_join_those_that_were_made() -> None:
    one, _ = journal()
    one.mark(OPEN + 9, [filing(1)], "fired")
    one.learn({OPEN + 9: Marks({filing(2)}, {filing(3)})})
    assert len(one.marks(OPEN + 9)) == 3
    assert one.unrecorded == 1
    one.learn({})
    assert len(one.marks(OPEN + 8)) == 0


def test_a_minute_that_is_shut_takes_no_mark() -> None:
    one, _ = journal(closed={OPEN + 1})
    for minute in (OPEN - 1, OPEN + 1):
        one.mark(minute, [filing(1)], "fired")
    assert (one.unrecorded, one.dirty()) == (0, False)


# Rule V.


@pytest.mark.parametrize(
    ("fence", "offset", "valid"),
    [(3, 4, True), (3, 5, False), (4, 5, True), (4, 9, False), (2, 0, False), (6, 0, False)],
)
def test_a_row_of_another_reign_counts_if_that_reign_recorded_its_record(fence: int, offset: int, valid: bool) -> None:
    ends = {3: 5, 4: 9}
    one, _ = journal(reigns={f: (pack_position(1, end), 0, 0) for f, end in ends.items()})
    assert one.valid(filing(offset), fence) == valid
    assert not one.valid(filing(offset, Log.OUTCOMES), fence)


def test_a_row_of_mine_counts_once_i_remember_it_or_its_record_is_applied() -> None:
    one, intake = journal()
    deliver(intake, Log.SUBMIT, 2)
    assert not one.valid(filing(0), FENCE)
    intake.remembered(filing(0))
    assert one.valid(filing(0), FENCE)
    assert not one.valid(filing(1), FENCE)
    intake.done(intake.take(9))
    assert one.valid(filing(1), FENCE)


# Writing.


def test_timestamps_carry_the_fence_and_count_up() -> None:
    one, _ = journal()
    assert [one.timestamp() for _ in range(3)] == [write_timestamp(FENCE, n) for n in (1, 2, 3)]


def test_a_checkpoint_says_where_the_logs_stand_and_its_number_is_new() -> None:
    one, intake = journal()
    apply(intake, Log.SUBMIT, 4)
    assert one.dirty()
    first = checkpoint(one)
    assert first.offsets == (pack_position(1, 4), *STARTS[1:])
    assert not one.dirty()
    apply(intake, Log.OUTCOMES, 2)
    assert one.dirty()
    second = checkpoint(one)
    assert [first.number, second.number] == [FENCE << 32 | 1, FENCE << 32 | 2]
    assert (one.started, one.succeeded) == (2, 2)


def test_what_is_wanted_is_written_though_nothing_changed() -> None:
    one, _ = journal()
    assert not one.dirty()
    one.wanted = True
    assert one.dirty()
    checkpoint(one)
    assert not one.dirty()


class Recording(RuleBasedStateMachine):
    """Marks, checkpoints that succeed, or are under way while marks are made. The model is what a store holds."""

    def __init__(self) -> None:
        super().__init__()
        self.journal, self.intake = journal()
        self.made: dict[tuple[int, int], str] = {}
        self.stored: dict[tuple[int, int], str] = {}
        self.under_way: Checkpoint | None = None
        self.numbers: list[int] = []

    @rule(minute=st.integers(0, 2), filings=st.sets(st.integers(0, 9)), kind=st.sampled_from(("fired", "removed")))
    def mark(self, minute: int, filings: set[int], kind: Any) -> None:
        self.journal.mark(OPEN + minute, [filing(n) for n in filings], kind)
        for number in filings:
            self.made.setdefault((OPEN + minute, filing(number)), kind)

    @rule(count=st.integers(1, 3))
    def apply_records(self, count: int) -> None:
        apply(self.intake, Log.SUBMIT, (self.intake.readers[0].next_position - STARTS[0] >> 14) + count)

    @precondition(lambda self: self.under_way is None)
    @rule()
    def build(self) -> None:
        self.under_way = self.journal.build([])
        self.numbers.append(self.under_way.number)

    @precondition(lambda self: self.under_way is not None)
    @rule(times=st.integers(1, 2))
    def succeed(self, times: int) -> None:
        assert self.under_way is not None
        for _ in range(times):  # the store may be told twice: it is idempotent
            for new in self.under_way.marks:
                self.stored |= {(new.minute, f): "fired" for f in new.fired}
                self.stored |= {(new.minute, f): "removed" for f in new.removed}
        self.journal.recorded(self.under_way)
        self.under_way = None

    @invariant()
    def accounts(self) -> None:
        assert self.stored.items() <= self.made.items()
        assert self.journal.unrecorded == len(self.made) - len(self.stored)
        assert all(self.journal.kind(minute, f) == kind for (minute, f), kind in self.made.items())
        assert self.numbers == sorted(set(self.numbers))
        if self.journal.unrecorded:
            assert self.journal.dirty()

    def teardown(self) -> None:
        if self.under_way:
            self.succeed(1)
        self.build()
        self.succeed(1)
        assert self.stored == self.made
        assert not self.journal.dirty()
        assert self.journal.succeeded == len(self.numbers)


Recording.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
TestRecording = Recording.TestCase


# Closing.


def test_a_minute_closes_when_it_is_proven_and_named_with_its_marks_counted() -> None:
    one, _ = journal()
    one.mark(OPEN, [filing(1), filing(2)], "fired")
    one.mark(OPEN, [filing(3)], "removed")
    one.count_late(OPEN, 1)
    one.prove(OPEN, 3)
    assert not one.settled(OPEN)
    built = one.build([OPEN])
    assert (built.closed, built.open_minute, built.marks) == ((OPEN,), OPEN + 1, ())
    assert one.shut(OPEN)
    assert not one.closed(OPEN)
    one.recorded(built)
    assert one.closed(OPEN)
    assert one.settled(OPEN)
    digest = mix(filing(1)) ^ mix(filing(2)) ^ mix(filing(3))
    assert list(one.closings) == [Closing(OPEN, 3, 2, 1, 1, digest)]
    assert (one.unrecorded, one.dirty()) == (0, False)
    assert one.kind(OPEN, filing(1)) is None  # and its marks are no longer kept
    assert one.undropped == {OPEN}


def test_a_minute_that_is_named_but_not_proven_stays_open() -> None:
    one, _ = journal()
    assert checkpoint(one, [OPEN]).closed == ()
    assert not one.shut(OPEN)


def test_a_proof_holds_for_one_checkpoint() -> None:
    one, _ = journal()
    one.prove(OPEN, 0)
    assert one.proven() == [OPEN]
    assert checkpoint(one, []).closed == ()
    assert one.proven() == []
    assert one.settled(OPEN)
    assert checkpoint(one, [OPEN]).closed == ()


def test_rule_y_a_minute_closes_only_with_the_offsets_of_all_that_filed_or_marked_in_it() -> None:
    one, intake = journal()
    one.touch(OPEN, filing(3))
    one.touch(OPEN, filing(1))
    one.touch(OPEN, filing(0, Log.OUTCOMES))
    for log, end in ((Log.SUBMIT, 3), (Log.OUTCOMES, 1)):
        apply(intake, log, end)
        assert not one.covered(OPEN)
        one.prove(OPEN, 0)
        assert checkpoint(one, [OPEN]).closed == ()
    apply(intake, Log.SUBMIT, 4)
    assert one.covered(OPEN)
    one.prove(OPEN, 0)
    built = checkpoint(one, [OPEN])
    assert built.closed == (OPEN,)
    assert built.offsets[0] == pack_position(1, 4)


@given(st.permutations(range(6)), st.integers(0, 6))
def test_the_open_minute_moves_over_closed_ones_only(order: list[int], claimed_at: int) -> None:
    """Minutes close in any order; after each, the open minute is the lowest that is not closed."""
    closed = set(order[:claimed_at])
    lowest = min(set(range(7)) - closed)
    one, _ = journal(open_minute=OPEN + lowest, closed={OPEN + n for n in closed if n > lowest})
    for minute in order[claimed_at:]:
        one.prove(OPEN + minute, 0)
        checkpoint(one, [OPEN + minute])
        closed.add(minute)
        assert one.open_minute - OPEN == min(set(range(7)) - closed)
        assert all(one.shut(OPEN + n) == (n in closed) for n in range(7))


def test_one_write_may_pass_many_minutes() -> None:
    one, _ = journal()
    for minute in range(60):
        one.prove(OPEN + minute, 0)
    built = checkpoint(one, range(OPEN, OPEN + 60))
    assert (len(built.closed), built.open_minute) == (60, OPEN + 60)
    assert len(one.closings) == 60


@given(st.permutations(range(5)))
def test_the_dropped_minute_is_that_below_which_all_buckets_are_gone(order: list[int]) -> None:
    one, _ = journal()
    for minute in range(5):
        one.prove(OPEN + minute, 0)
    checkpoint(one, range(OPEN, OPEN + 5))
    gone: set[int] = set()
    for minute in order:
        one.dropped(OPEN + minute)
        gone.add(minute)
        assert one.dropped_minute == OPEN + min(set(range(6)) - gone) - 1
    assert one.dirty()
    assert checkpoint(one).dropped_minute == OPEN + 4
    assert one.undropped == set()


def test_a_successor_finishes_the_drops_of_its_predecessor() -> None:
    one, _ = journal(dropped_minute=OPEN - 4, closed={OPEN + 2})
    assert one.undropped == {OPEN - 3, OPEN - 2, OPEN - 1, OPEN + 2}
    for minute in (OPEN - 3, OPEN - 1, OPEN + 2):
        one.dropped(minute)
    assert one.dropped_minute == OPEN - 3
    one.dropped(OPEN - 2)
    assert one.dropped_minute == OPEN - 1  # above it stands a minute that is open


def test_what_is_late_is_counted_by_minute() -> None:
    one, _ = journal()
    for minute, count in ((OPEN, 2), (OPEN + 1, 1), (OPEN, 3)):
        one.count_late(minute, count)
        one.prove(minute, 0)
    checkpoint(one, [OPEN, OPEN + 1])
    assert [record.late for record in one.closings] == [5, 1]
