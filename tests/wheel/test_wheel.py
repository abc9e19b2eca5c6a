"""The wheel against a plain dictionary of what waits: same tasks in, same tasks out, in order, on time."""

import gc
import heapq
import os
import random
import sys
import tracemalloc
from array import array
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from minutewheel.wheel import Slice, Wheel
from minutewheel.wheel.wheel import RUN_LENGTH_MAX

pytestmark = pytest.mark.pure

NOON_MS = 1_790_856_000_000  # 2026-10-01T12:00:00Z
TICK_MS = 10
YEAR_MS = 31_556_952_000
ALL = 1_000_000_000

Task = tuple[int, int]
"""(due, filing)"""


def record_of(due_ms: int, filing: int) -> bytes:
    return b"%d/%d" % (due_ms, filing) * (1 + filing % 3)


def tick_of(due_ms: int, tick_ms: int = TICK_MS) -> int:
    return -(-due_ms // tick_ms)


def tasks_of(slices: Iterable[Slice]) -> list[Task]:
    return [task for part in slices for task in zip(part.dues, part.filings, strict=True)]


def reference_counts(records: list[bytes]) -> list[int]:
    return [sys.getrefcount(record) for record in records]


def load(wheel: Wheel, minute: int, page: Iterable[Task]) -> None:
    page = sorted(page)
    wheel.load(minute, [due for due, _ in page], [filing for _, filing in page], [record_of(*task) for task in page])


def add(wheel: Wheel, minute: int, task: Task) -> None:
    wheel.add(minute, *task, record_of(*task))


DISTANCES_MS = st.one_of(
    st.integers(-100, 700),
    st.integers(-5_000, 60_000),
    st.sampled_from(
        [sign * 64**level * TICK_MS + d for level in range(5) for sign in (-1, 1) for d in (-10, -9, -1, 0, 1, 10)]
    ),
    st.integers(-(2**40), 2**40),
    st.sampled_from([YEAR_MS, 50 * YEAR_MS, 7_000 * YEAR_MS]),
)
STEPS_MS = st.one_of(
    st.integers(0, 25),
    st.sampled_from([257, 630, 640, 650, 40_950, 40_960, 60_000, 3_600_000, YEAR_MS, 8_000 * YEAR_MS]),
    st.sampled_from([-1, -500, -3_600_000]),
)


class WheelBesideAModel(RuleBasedStateMachine):
    """The model fires, at each advance, the tasks with the least ticks that are not after now."""

    @initialize(now_ms=st.sampled_from([0, 1, 639, 640, 40_959, NOON_MS, NOON_MS + 7]))
    def start(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.now_ms_max = now_ms
        self.wheel = Wheel(now_ms)
        self.model: dict[Task, int] = {}
        self.filing = 0
        self.gone: list[Task] = []

    def new_task(self, distance_ms: int, *, salt: int = 0) -> Task:
        """Filings need not rise with time."""
        self.filing += 1
        return max(0, min(self.now_ms + distance_ms, 253_402_300_799_999)), (self.filing << 8 | salt)

    @rule(
        minute=st.integers(0, 2),
        at_ms=DISTANCES_MS,
        spread=st.lists(st.integers(0, 3_000), max_size=40),
        scale=st.sampled_from([1, 1, 1, 20, 2**25]),
        salt=st.integers(0, 255),
    )
    def load_page(self, minute: int, at_ms: int, spread: list[int], scale: int, salt: int) -> None:
        page = [self.new_task(at_ms + part * scale, salt=salt) for part in spread]
        self.model.update(dict.fromkeys(page, minute))
        load(self.wheel, minute, page)

    @rule(minute=st.integers(0, 2), distance_ms=DISTANCES_MS, salt=st.integers(0, 255))
    def add_one(self, minute: int, distance_ms: int, salt: int) -> None:
        task = self.new_task(distance_ms, salt=salt)
        self.model[task] = minute
        add(self.wheel, minute, task)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), distance_ms=st.integers(-15, 15))
    def add_beside_another(self, data: st.DataObject, distance_ms: int) -> None:
        beside = data.draw(st.sampled_from(list(self.model)))
        self.add_one(self.model[beside], beside[0] - self.now_ms + distance_ms, 0)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), again=st.booleans())
    def remove_one(self, data: st.DataObject, again: bool) -> None:
        task = data.draw(st.sampled_from(list(self.model)))
        minute = self.model.pop(task)
        assert self.wheel.contains(*task)
        assert self.wheel.remove(*task) == record_of(*task)
        assert not self.wheel.contains(*task)
        assert self.wheel.remove(*task) is None
        if again:
            self.model[task] = minute
            add(self.wheel, minute, task)
        else:
            self.gone.append(task)

    @precondition(lambda self: self.model)
    @rule()
    def remove_the_earliest(self) -> None:
        task = min(self.model)
        del self.model[task]
        assert self.wheel.remove(*task) == record_of(*task)
        self.gone.append(task)

    @precondition(lambda self: self.gone)
    @rule(data=st.data())
    def remove_what_is_gone(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.gone))
        assert not self.wheel.contains(*task)
        assert self.wheel.remove(*task) is None

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def forget_the_rest(self, data: st.DataObject) -> None:
        after = data.draw(st.sampled_from(list(self.model)))
        minute = self.model[after]
        lost = [task for task in self.model if self.model[task] == minute and task > after]
        assert self.wheel.forget(minute, after) == len(lost)
        for task in lost:
            del self.model[task]
        self.gone.extend(lost)

    @rule(step_ms=STEPS_MS, limit=st.sampled_from([0, 1, 2, 7, ALL, ALL]))
    def advance(self, step_ms: int, limit: int) -> None:
        self.now_ms = max(0, self.now_ms + step_ms)
        self.check_firing(limit)

    @rule(limit=st.sampled_from([1, ALL]))
    def advance_to_the_next(self, limit: int) -> None:
        next_ms = self.wheel.next_ms()
        if next_ms is not None:
            self.now_ms = next_ms
            assert self.check_firing(limit)

    def check_firing(self, limit: int) -> list[Task]:
        due = sorted(tick_of(task[0]) for task in self.model if tick_of(task[0]) * TICK_MS <= self.now_ms)
        slices = self.wheel.advance(self.now_ms, limit)
        fired = tasks_of(slices)
        assert [tick_of(task[0]) for task in fired] == due[:limit]
        for part in slices:
            pairs = list(zip(part.dues, part.filings, strict=True))
            assert pairs == sorted(pairs)
            assert part.records == [record_of(*task) for task in pairs]
            assert {self.model.pop(task) for task in pairs} == {part.minute}
        self.gone.extend(fired)
        return fired

    @invariant()
    def sums_agree(self) -> None:
        assert len(self.wheel) == len(self.model)
        assert self.wheel.size_bytes == sum(len(record_of(*task)) for task in self.model)
        counts = Counter(self.model.values())
        assert [self.wheel.count(minute) for minute in range(4)] == [counts[minute] for minute in range(4)]

    @invariant()
    def the_next_time_is_the_least(self) -> None:
        next_tick = min((tick_of(task[0]) for task in self.model), default=None)
        assert self.wheel.next_ms() == (None if next_tick is None else next_tick * TICK_MS)

    def teardown(self) -> None:
        """At last everything that waits fires, once."""
        if hasattr(self, "wheel"):
            fired = tasks_of(self.wheel.advance(300_000_000_000_000, ALL))
            assert sorted(fired) == sorted(self.model)
            assert len(self.wheel) == 0
            assert not list(self.wheel._index)
            assert not self.wheel._open


WheelBesideAModel.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestWheelBesideAModel = WheelBesideAModel.TestCase


# Case 51: the borders of levels.

BORDERS = sorted(
    {0, 1, *(64**n + d for n in range(1, 4) for d in (-1, 0, 1)), 255, 256, 257, 65_535, 65_536, 65_537}
    | {2**24 - 1, 2**24, 2**24 + 1}
)
STARTS = [0, 1, 200, 255, 256, 65_535]


def heap_firings(tasks: list[Task], nows: Iterable[int]) -> list[tuple[int, list[Task]]]:
    heap = list(tasks)
    heapq.heapify(heap)
    firings = []
    for now in nows:
        fired = []
        while heap and heap[0][0] <= now:
            fired.append(heapq.heappop(heap))
        if fired:
            firings.append((now, fired))
    return firings


def wheel_firings(wheel: Wheel, nows: Iterable[int]) -> list[tuple[int, list[Task]]]:
    return [(now, fired) for now in nows if (fired := tasks_of(wheel.advance(now, ALL)))]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("way", ["one page", "pages", "one by one"])
@pytest.mark.parametrize("step", [1, 257, 10**6])
def test_deadlines_at_the_borders_of_levels_fire_as_from_a_heap(start: int, way: str, step: int) -> None:
    wheel = Wheel(start, tick_ms=1)
    tasks = [(tick, 1_000 + n) for n, tick in enumerate(BORDERS)]
    if way == "one page":
        load(wheel, 0, tasks)
    elif way == "pages":
        for n in range(3):
            load(wheel, n, tasks[n::3])
    else:
        for task in reversed(tasks):
            add(wheel, 0, task)
    # Single steps over sixteen million ticks would take minutes: the last borders are walked up to from near.
    nows = list(range(start, 66_000, step)) if step == 1 else []
    nows += list(range(max(start, 66_000), 2**18 + 600, step if step > 1 else 257))
    nows += list(range(2**24 - 600, 2**24 + 10**6 + 600, step if step > 1 else 1_000))
    nows.sort()
    assert wheel_firings(wheel, nows) == heap_firings(tasks, nows)
    assert len(wheel) == 0


@pytest.mark.parametrize("start", STARTS)
def test_sleeping_exactly_until_the_next_time_meets_every_deadline_on_its_tick(start: int) -> None:
    wheel = Wheel(start, tick_ms=1)
    tasks = [(start + tick, 1_000 + n) for n, tick in enumerate(BORDERS)]
    load(wheel, 0, tasks)
    fired = []
    while (next_ms := wheel.next_ms()) is not None:
        assert wheel.advance(next_ms - 1, ALL) == []
        fired += [(next_ms, task) for task in tasks_of(wheel.advance(next_ms, ALL))]
    assert fired == [(task[0], task) for task in tasks]


def test_a_deadline_between_two_ticks_waits_for_the_later_one() -> None:
    wheel = Wheel(0)
    load(wheel, 0, [(2_555, 1), (2_550, 2), (2_559, 3), (2_560, 4), (2_561, 5)])
    firings = wheel_firings(wheel, range(2_600))
    assert firings == [(2_550, [(2_550, 2)]), (2_560, [(2_555, 1), (2_559, 3), (2_560, 4)]), (2_570, [(2_561, 5)])]


@pytest.mark.parametrize("distance_ms", [0, 10, 640, 40_960, 65_537 * TICK_MS])
def test_remove_and_add_again_between_two_advances(distance_ms: int) -> None:
    wheel = Wheel(NOON_MS)
    task = (NOON_MS + distance_ms, 5)
    for _ in range(3):
        add(wheel, 0, task)
        assert wheel.remove(*task) == record_of(*task)
        assert (len(wheel), wheel.size_bytes, wheel.next_ms()) == (0, 0, None)
    add(wheel, 0, task)
    assert tasks_of(wheel.advance(task[0], ALL)) == [task]
    assert wheel.advance(task[0] + 10**9, ALL) == []


def test_a_retry_added_while_its_tick_is_released_fires_in_the_same_tick_and_never_again() -> None:
    wheel = Wheel(NOON_MS)
    load(wheel, 0, [(NOON_MS + 10, n) for n in range(10)])
    first = tasks_of(wheel.advance(NOON_MS + 10, 4))
    add(wheel, 0, (NOON_MS + 10, 99))
    add(wheel, 1, (NOON_MS - 5_000, 98))
    assert wheel.remove(NOON_MS + 10, 9) is not None
    rest = tasks_of(wheel.advance(NOON_MS + 10, ALL))
    assert rest[0] == (NOON_MS - 5_000, 98)
    assert sorted(first + rest[1:]) == [(NOON_MS + 10, n) for n in (*range(9), 99)]
    assert wheel_firings(wheel, range(NOON_MS, NOON_MS + 5_000)) == []


def test_a_later_near_task_does_not_hide_an_earlier_far_one() -> None:
    wheel = Wheel(0, tick_ms=1)
    far = (4_100, 1)
    add(wheel, 0, far)
    wheel.advance(4_090, ALL)
    add(wheel, 0, (4_101, 2))
    assert wheel.next_ms() == 4_100
    assert tasks_of(wheel.advance(4_100, ALL)) == [far]


# Case 53: the clock steps.


def test_an_hour_back_fires_nothing_twice_and_nothing_early() -> None:
    wheel = Wheel(NOON_MS)
    hour_ms = 3_600_000
    load(wheel, 0, [(NOON_MS + s * 1_000, s) for s in range(120)])
    before = tasks_of(wheel.advance(NOON_MS + 30_000, ALL))
    assert len(before) == 31
    stepped_ms = NOON_MS + 30_000 - hour_ms
    assert wheel.advance(stepped_ms, ALL) == []
    # What is filed in the hour that comes again is due in that hour, neither at once nor after it.
    again = (stepped_ms + 5_000, 1_000)
    add(wheel, 9, again)
    assert wheel.next_ms() == stepped_ms + 5_000
    assert wheel_firings(wheel, range(stepped_ms, NOON_MS + 30_010, 500)) == [(again[0], [again])]
    after = tasks_of(wheel.advance(NOON_MS + 200_000, ALL))
    assert sorted(before + after) == [(NOON_MS + s * 1_000, s) for s in range(120)]


def test_a_day_forward_releases_a_hundred_a_second_in_bounded_steps_in_order() -> None:
    wheel = Wheel(NOON_MS)
    tasks = [(NOON_MS + n * 10, n) for n in range(6_000)]
    for start in range(0, len(tasks), 500):
        load(wheel, 0, tasks[start : start + 500])
    now_ms = NOON_MS + 86_400_000
    fired: list[Task] = []
    while chunk := tasks_of(wheel.advance(now_ms, 1_000)):
        assert len(chunk) <= 1_000
        fired += chunk
    assert fired == tasks


def test_slewing_by_half_a_second_keeps_every_task_on_its_own_time() -> None:
    wheel = Wheel(NOON_MS)
    tasks = [(NOON_MS + n * 37, n) for n in range(200)]
    load(wheel, 0, tasks)
    fired: list[Task] = []
    now_ms = NOON_MS
    for step in range(200):
        now_ms += 540 if step % 2 else -460
        chunk = tasks_of(wheel.advance(now_ms, ALL))
        assert all(due_ms <= now_ms for due_ms, _ in chunk)
        fired += chunk
        next_ms = wheel.next_ms()
        assert next_ms is None or next_ms > now_ms
    assert fired == tasks


# Case 54: the far future.


@pytest.mark.parametrize(
    "due",
    [
        datetime(2026, 10, 26, 12, tzinfo=UTC),
        datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
        datetime(2100, 1, 1, tzinfo=UTC),
        datetime(2262, 4, 12, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_far_future_tasks_wait_can_be_cancelled_and_fire_at_their_time(due: datetime) -> None:
    wheel = Wheel(NOON_MS)
    due_ms = int(due.timestamp()) * 1_000 + 999
    for filing in (1, 2):
        add(wheel, due_ms // 60_000, (due_ms, filing))
    load(wheel, 0, [(NOON_MS + 500, 3), (due_ms, 4)])
    assert tasks_of(wheel.advance(NOON_MS + 1_000, ALL)) == [(NOON_MS + 500, 3)]
    assert wheel.remove(due_ms, 2) == record_of(due_ms, 2)
    assert wheel.next_ms() == due_ms + 1
    assert wheel.advance(due_ms, ALL) == []
    assert sorted(tasks_of(wheel.advance(due_ms + 1, ALL))) == [(due_ms, 1), (due_ms, 4)]


# Runs and single arrivals.


def test_late_arrivals_join_the_page_that_passes_their_time() -> None:
    wheel = Wheel(NOON_MS)
    load(wheel, 5, [(NOON_MS + n * 10, n) for n in range(0, 100, 2)])
    for n in range(1, 99, 2):
        add(wheel, 5, (NOON_MS + n * 10, n))
    slices = wheel.advance(NOON_MS + 1_000, ALL)
    assert len(slices) == 1
    assert tasks_of(slices) == [(NOON_MS + n * 10, n) for n in range(99)]


def test_arrivals_of_two_minutes_in_one_slot_keep_their_minutes() -> None:
    wheel = Wheel(NOON_MS)
    for n in range(10):
        add(wheel, n % 2, (NOON_MS + 700 + n, n))
    fired = {part.minute: list(part.filings) for part in wheel.advance(NOON_MS + 800, ALL)}
    assert fired == {0: [0, 2, 4, 6, 8], 1: [1, 3, 5, 7, 9]}


def test_pages_and_runs_of_arrivals_are_bounded_in_length() -> None:
    wheel = Wheel(NOON_MS)
    tasks = [(NOON_MS + 10 + n % 3, n) for n in range(2 * RUN_LENGTH_MAX + 100)]
    load(wheel, 0, tasks)
    later = [(NOON_MS + 60_000, n) for n in range(RUN_LENGTH_MAX + 100)]
    for task in later:
        add(wheel, 1, task)
    assert max(len(run) for run in wheel._index) == RUN_LENGTH_MAX
    assert sorted(tasks_of(wheel.advance(NOON_MS + 60_000, ALL))) == sorted(tasks + later)


def test_the_order_of_arrival_of_overlapping_overdue_pages_does_not_matter() -> None:
    tasks = [(NOON_MS - 50_000 + n * 7, n) for n in range(3_000)]
    fired = []
    for order in ((0, 1, 2), (2, 0, 1)):
        wheel = Wheel(NOON_MS)
        for n in order:
            load(wheel, n, tasks[n::3])
        fired.append([tick_of(due_ms) for due_ms, _ in tasks_of(wheel.advance(NOON_MS, ALL))])
    assert fired[0] == fired[1] == [tick_of(due_ms) for due_ms, _ in tasks]


def test_an_empty_page_and_an_idle_wheel_do_nothing() -> None:
    wheel = Wheel(NOON_MS)
    wheel.load(0, [], [], [])
    assert (len(wheel), wheel.count(0), wheel.next_ms(), wheel.forget(0, (0, 0))) == (0, 0, None, 0)
    assert wheel.advance(NOON_MS + YEAR_MS, ALL) == []


def test_the_caller_may_go_on_using_the_columns_that_it_loaded() -> None:
    wheel = Wheel(NOON_MS)
    dues, filings, records = array("Q", [NOON_MS, NOON_MS + 10_000 * YEAR_MS // 10]), array("Q", [1, 2]), [b"a", b"b"]
    wheel.load(0, dues, filings, records)
    dues[0], filings[0], records[0] = 0, 0, b"changed"
    assert wheel.advance(NOON_MS, ALL)[0].records == [b"a"]
    assert records == [b"changed", b"b"]


# What a waiting task costs.


def test_the_garbage_collector_sees_runs_not_tasks() -> None:
    wheel = Wheel(NOON_MS)
    pages = [[(NOON_MS + n, page << 32 | n) for n in range(1_000)] for page in range(20)]
    gc.collect()
    before = len(gc.get_objects())
    for page in pages:
        load(wheel, 0, page)
    for n in range(500):
        add(wheel, 0, (NOON_MS + n, n))
    gc.collect()
    assert len(gc.get_objects()) - before <= 5 * len(pages) + 10


def test_a_task_of_136_bytes_takes_at_most_200() -> None:
    random.seed(1)
    wheel = Wheel(NOON_MS)
    tracemalloc.start()
    try:
        for page in range(10):
            dues = sorted(NOON_MS + page * 800 + random.randrange(800) for _ in range(5_000))
            filings = [random.getrandbits(63) for _ in dues]
            wheel.load(0, dues, filings, [os.urandom(136) for _ in dues])
        del dues, filings
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held / len(wheel) <= 200


def test_a_removed_or_fired_record_is_held_no_longer() -> None:
    wheel = Wheel(NOON_MS)
    records = [bytes([65 + n]) * 50 for n in range(4)]
    before = reference_counts(records)
    wheel.load(0, [NOON_MS + 10 * n for n in range(3)], [0, 1, 2], records[:3])
    wheel.add(0, NOON_MS + 5_000, 3, records[3])
    wheel.advance(NOON_MS, ALL)
    wheel.remove(NOON_MS + 10, 1)
    wheel.remove(NOON_MS + 5_000, 3)
    assert reference_counts(records) == [before[0], before[1], before[2] + 1, before[3]]


def test_the_last_of_a_minute_is_known_among_pages_and_single_arrivals() -> None:
    wheel = Wheel(0)
    assert wheel.last(1) is None
    wheel.load(1, [60_000, 61_000], [4, 5], [b"a", b"b"])
    wheel.add(2, 130_000, 9, b"c")
    assert wheel.last(1) == (61_000, 5)
    wheel.add(1, 90_000, 7, b"d")
    assert wheel.last(1) == (90_000, 7)
    wheel.advance(200_000, 100)
    assert wheel.last(1) is None
