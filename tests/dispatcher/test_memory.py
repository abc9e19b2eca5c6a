"""What is in memory, where, and how it is counted."""

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.memory import Budget, Memory
from minutewheel.store.task import BucketRow

pytestmark = pytest.mark.pure

MINUTE = 29_833_333
START_MS = MINUTE * 60_000


def row(filing: int, *, minute: int = MINUTE, offset_ms: int = 0, size: int = 5) -> BucketRow:
    return BucketRow(minute, 0, minute * 60_000 + offset_ms, filing, b"r" * size)


def memory(*, reach: int = MINUTE, budget: Budget | None = None) -> Memory:
    return Memory(3, START_MS, reach, budget or Budget())


def place(one: BucketRow) -> tuple[int, int, int]:
    return one.minute, one.due_ms, one.filing


# Budget.


@pytest.mark.parametrize(
    ("tasks", "size", "full", "roomy"),
    [
        (0, 0, False, True),
        (4, 49, False, True),
        (5, 0, False, False),
        (0, 50, False, False),
        (9, 99, False, False),
        (10, 0, True, False),
        (0, 100, True, False),
    ],
)
def test_a_budget_is_full_in_tasks_or_bytes_and_roomy_when_half_empty_in_both(
    tasks: int, size: int, full: bool, roomy: bool
) -> None:
    budget = Budget(10, 100)
    budget.add(tasks, size)
    assert (budget.full(), budget.roomy()) == (full, roomy)
    budget.add(-tasks, -size)
    assert budget.roomy()


# One by one.


def test_a_filing_goes_from_the_wheel_to_the_gate_into_flight_and_out() -> None:
    here = memory()
    one = row(1)
    here.admit(MINUTE, [one], anew=False)
    assert here.has(one.due_ms, 1)
    (due,) = here.take_due(START_MS, 9)
    assert (due.shard, due.minute, due.due_ms, due.filing, due.record) == (3, MINUTE, START_MS, 1, one.record)
    assert here.take_due(START_MS, 9) == []
    assert here.held == {1: due}
    here.release([due])
    assert here.firing == {1: due}
    assert here.has(one.due_ms, 1)
    assert here.count(MINUTE) == 1
    here.fired([due])
    assert not here.has(one.due_ms, 1)
    assert here.count(MINUTE) == 0
    assert (here.budget.tasks, here.budget.bytes) == (0, 0)


def test_what_lies_above_the_reach_is_left_to_the_store() -> None:
    here = memory()
    here.remember(row(1, minute=MINUTE + 1))
    assert here.count(MINUTE + 1) == 0
    here.remember(row(3))
    here.remember(row(3))
    assert here.count(MINUTE) == 1


def test_a_filing_that_comes_while_its_minute_is_read_is_there_once() -> None:
    here = memory(reach=MINUTE - 1)
    here.begin(MINUTE)
    assert not here.loaded(MINUTE)
    here.admit(MINUTE, [row(1)], anew=False)
    here.remember(row(2, offset_ms=500))
    here.admit(MINUTE, [row(2, offset_ms=500), row(3, offset_ms=500)], anew=False)
    here.end(MINUTE)
    assert here.loaded(MINUTE)
    assert [due.filing for due in here.take_due(START_MS + 500, 9)] == [1, 2, 3]


@pytest.mark.parametrize("gone_to", ["held", "firing"])
def test_one_that_came_while_its_minute_is_read_and_is_due_already_is_there_once(gone_to: str) -> None:
    here = memory(reach=MINUTE - 1)
    here.begin(MINUTE)
    here.remember(row(2))
    dues = here.take_due(START_MS, 9)
    if gone_to == "firing":
        here.release(dues)
    here.admit(MINUTE, [row(2)], anew=False)
    assert here.count(MINUTE) == 1


def test_a_minute_that_is_read_again_gains_only_what_is_not_here() -> None:
    here = memory()
    here.admit(MINUTE, [row(1), row(2), row(3)], anew=False)
    held, *_ = here.take_due(START_MS, 1)
    here.begin(MINUTE)
    here.admit(MINUTE, [row(1), row(2), row(3), row(4)], anew=True)
    here.end(MINUTE)
    assert here.count(MINUTE) == 4
    assert held.live


def test_the_rest_of_a_minute_may_be_left_to_the_store() -> None:
    here = memory(reach=MINUTE - 1)
    here.begin(MINUTE)
    here.end(MINUTE, forget=(START_MS, 7))
    assert (here.reach, here.forgotten) == (MINUTE, {MINUTE: (START_MS, 7)})
    assert not here.loaded(MINUTE)
    here.begin(MINUTE)
    assert here.forgotten == {}
    assert here.reach == MINUTE


def test_of_a_forgotten_minute_what_is_due_before_the_point_is_still_remembered() -> None:
    here = memory()
    here.forget(MINUTE, (START_MS + 20, 0))
    here.remember(row(1, offset_ms=19))
    here.remember(row(2, offset_ms=20))
    assert here.count(MINUTE) == 1
    assert not here.loaded(MINUTE)


def test_where_the_budget_is_used_up_what_is_due_last_makes_room() -> None:
    here = memory(reach=MINUTE + 1, budget=Budget(2))
    here.remember(row(1, offset_ms=10))
    here.remember(row(2, minute=MINUTE + 1))
    here.remember(row(3, offset_ms=20))
    assert (here.count(MINUTE), here.count(MINUTE + 1), here.forgotten) == (2, 0, {MINUTE + 1: (-1, -1)})
    here.remember(row(4, offset_ms=15))
    assert [due.filing for due in here.take_due(START_MS + 99, 9)] == [1, 4]
    assert here.forgotten == {MINUTE: (START_MS + 15, 4), MINUTE + 1: (-1, -1)}
    assert here.budget.tasks == 2
    here.remember(row(5, offset_ms=99))
    assert here.count(MINUTE) == here.budget.tasks == 2


def test_what_came_late_and_made_room_for_the_reading_comes_back_with_its_page() -> None:
    here = memory(reach=MINUTE - 1, budget=Budget(1, 1_000))
    here.begin(MINUTE)
    late, first = row(2, offset_ms=200), row(1, offset_ms=100)
    here.remember(late)
    here.admit(MINUTE, [first], anew=False)
    assert here.make_room(MINUTE, (first.due_ms, first.filing), reading=True)
    assert not here.has(late.due_ms, late.filing)
    here.admit(MINUTE, [late], anew=False)
    assert here.has(late.due_ms, late.filing)
    assert here.count(MINUTE) == 2


def test_what_is_due_later_than_a_point_could_make_room_for_it() -> None:
    """Also in the same minute: what stands behind the point keeps what was forgotten before it out of memory."""
    memory_ = memory(reach=MINUTE + 1)
    for offset_ms in (3_000, 50_000):
        memory_.remember(row(offset_ms, offset_ms=offset_ms))
    assert memory_.later(MINUTE, (START_MS + 1_000, 7))
    assert memory_.later(MINUTE, (START_MS + 50_000, 49_999))
    assert not memory_.later(MINUTE, (START_MS + 50_000, 50_000))
    assert not memory_.later(MINUTE + 1, (START_MS + 60_000, 0))
    memory_.remember(row(9, minute=MINUTE + 1))
    assert memory_.later(MINUTE, (START_MS + 50_000, 50_000))


def test_a_removed_filing_leaves_the_wheel_or_the_gate_but_not_flight() -> None:
    here = memory()
    rows = [row(1), row(2), row(3, offset_ms=50)]
    here.admit(MINUTE, rows, anew=False)
    held, flying = here.take_due(START_MS, 9)
    here.release([flying])
    for one in rows:
        here.remove(place(one))
    assert not held.live
    assert flying.live
    assert here.take_due(START_MS + 50, 9) == []
    assert here.count(MINUTE) == 1
    here.remove((MINUTE, START_MS, 99))
    assert here.count(MINUTE) == 1


def test_what_is_put_back_is_held_again_or_left_to_the_next_owner() -> None:
    here = memory()
    here.admit(MINUTE, [row(1), row(2)], anew=False)
    dues = here.take_due(START_MS, 9)
    here.release(dues)
    here.put_back(dues, hold=True)
    assert set(here.held) == {1, 2}
    assert all(due.live for due in dues)
    here.release(dues)
    here.put_back(dues, hold=False)
    assert not any(due.live for due in dues)
    assert (here.held, here.firing, here.count(MINUTE)) == ({}, {}, 0)


def test_a_hand_over_withholds_what_is_at_the_gate_and_waits_for_what_flies() -> None:
    here = memory()
    here.admit(MINUTE, [row(1), row(2), row(3, offset_ms=99)], anew=False)
    held, flying = here.take_due(START_MS, 9)
    here.release([flying])
    here.withhold()
    assert (held.live, flying.live) == (False, True)
    assert here.firing == {2: flying}
    assert here.count(MINUTE) == 2


# At random.


class Handling(RuleBasedStateMachine):
    """All verbs in any order a shard may call them in; the model is where each filing is."""

    filings = Bundle("filings")

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget()
        self.budget.add(7, 70)  # another shard's
        self.memory = memory(budget=self.budget)
        self.rows: dict[int, BucketRow] = {}
        self.where: dict[int, str] = {}
        self.dues: dict[int, Due] = {}
        self.now_ms = START_MS

    def new(self, count: int, data: tuple[int, int]) -> list[BucketRow]:
        offset_ms, size = data
        numbers = range(len(self.rows) + 1, len(self.rows) + 1 + count)
        minute = MINUTE - len(self.rows) % 3
        rows = [row(number, minute=minute, offset_ms=offset_ms, size=size) for number in numbers]
        self.rows.update({one.filing: one for one in rows})
        return rows

    @rule(target=filings, count=st.integers(1, 4), data=st.tuples(st.integers(0, 59_999), st.integers(0, 9)))
    def load(self, count: int, data: tuple[int, int]) -> object:
        rows = self.new(count, data)
        self.memory.admit(rows[0].minute, rows, anew=False)
        self.where.update({one.filing: "wheel" for one in rows})
        return multiple(*(one.filing for one in rows))

    @rule(target=filings, data=st.tuples(st.integers(0, 59_999), st.integers(0, 9)))
    def file(self, data: tuple[int, int]) -> int:
        (one,) = self.new(1, data)
        self.memory.remember(one)
        self.where[one.filing] = "wheel"
        return one.filing

    @rule(some=st.lists(filings, max_size=4, unique=True))
    def read_again(self, some: list[int]) -> None:
        minute = MINUTE
        rows = sorted((self.rows[f] for f in some if self.rows[f].minute == minute), key=lambda r: (r.due_ms, r.filing))
        rows = [one for one in rows if one.filing in self.where]  # the others are marked
        self.memory.begin(minute)
        self.memory.admit(minute, rows, anew=True)
        self.memory.end(minute)

    @rule(filing=filings)
    def remember_again(self, filing: int) -> None:
        if filing in self.where:
            self.memory.remember(self.rows[filing])

    @rule(filing=consumes(filings))
    def cancel(self, filing: int) -> None:
        self.memory.remove(place(self.rows[filing]))
        if self.where.get(filing) in {"wheel", "held"}:
            del self.where[filing]

    @rule(span_ms=st.integers(0, 90_000), limit=st.integers(1, 5))
    def fall_due(self, span_ms: int, limit: int) -> None:
        self.now_ms += span_ms
        waiting = [f for f, place in self.where.items() if place == "wheel" and self.rows[f].due_ms <= self.now_ms]
        dues = self.memory.take_due(self.now_ms, limit)
        assert {due.filing for due in dues} <= set(waiting)
        for due in dues:
            self.dues[due.filing] = due
            self.where[due.filing] = "held"

    def at(self, name: str) -> list[Due]:
        return [self.dues[filing] for filing, where in self.where.items() if where == name]

    @precondition(lambda self: self.at("held"))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        some = data.draw(st.lists(st.sampled_from(self.at("held")), unique_by=id))
        self.memory.release(some)
        self.where.update({due.filing: "firing" for due in some})

    @precondition(lambda self: self.at("firing"))
    @rule(data=st.data(), what=st.sampled_from(("fired", "back")))
    def land(self, data: st.DataObject, what: str) -> None:
        some = data.draw(st.lists(st.sampled_from(self.at("firing")), unique_by=id))
        if what == "fired":
            self.memory.fired(some)
            for due in some:
                del self.where[due.filing]
        else:
            self.memory.put_back(some, hold=True)
            self.where.update({due.filing: "held" for due in some})

    @invariant()
    def counts_are_what_is_there(self) -> None:
        counts = Counter(self.rows[filing].minute for filing in self.where)
        for minute in range(MINUTE - 3, MINUTE + 2):
            assert self.memory.count(minute) == counts[minute]
        assert self.budget.tasks == 7 + len(self.where)
        assert self.budget.bytes == 70 + sum(len(self.rows[filing].record) for filing in self.where)
        assert set(self.memory.held) == {f for f, place in self.where.items() if place == "held"}
        assert set(self.memory.firing) == {f for f, place in self.where.items() if place == "firing"}
        for filing, one in self.rows.items():
            assert self.memory.has(one.due_ms, filing) == (filing in self.where)

    def teardown(self) -> None:
        held = self.at("held")
        self.memory.abandon()
        assert (self.budget.tasks, self.budget.bytes) == (7, 70)
        assert not any(due.live for due in held)


Handling.TestCase.settings = settings(max_examples=25, stateful_step_count=30)
TestHandling = Handling.TestCase
