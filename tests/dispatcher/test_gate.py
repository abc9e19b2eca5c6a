"""The order in which due tasks are let go: bands, order within them, aging, pauses."""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.gate import AGING_MS, DEAD_MIN, WEIGHTS, Gate
from minutewheel.store.record import NO_HEADERS, Filed, pack

pytestmark = pytest.mark.pure

NOW_MS = 1_790_000_000_000
SECOND_MS = 1_000


def due(filing: int, priority: int = 2, *, due_ms: int = NOW_MS, queue: str = "mail") -> Due:
    record = pack(Filed(1, filing, 1, priority, 0, f"acme/{filing}", queue, b"\x80", NO_HEADERS, b""))
    return Due(0, due_ms // 60_000, due_ms, filing, record)


def filings(dues: list[Due]) -> list[int]:
    return [one.filing for one in dues]


def priorities(dues: list[Due]) -> Counter[int]:
    return Counter(one.priority for one in dues)


def full_gate(count: int, queues: int = 1) -> Gate:
    """So many tasks of each priority wait in each queue."""
    gate = Gate()
    numbers = iter(range(count * queues * 3))
    gate.offer(
        [due(next(numbers), p, queue=f"q{q}") for _ in range(count) for q in range(queues) for p in (1, 2, 3)], NOW_MS
    )
    return gate


# Bands.


@settings(max_examples=30)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 3))
def test_any_ten_releases_in_a_row_are_seven_two_and_one(limits: list[int], queues: int) -> None:
    gate = full_gate(120, queues)
    released = [one for limit in limits for one in gate.release(NOW_MS, limit)]
    released = released[:120]  # till then all bands have work
    for start in range(len(released) - 9):
        assert priorities(released[start : start + 10]) == {1: 7, 2: 2, 3: 1}


@settings(max_examples=40)
@given(st.lists(st.sets(st.sampled_from((1, 2, 3)), min_size=1), max_size=40), st.integers(10, 100))
@example([{2, 3}] * 40, 30)
def test_the_shares_hold_whatever_was_released_before(past: list[set[int]], count: int) -> None:
    gate = Gate()
    for turn, bands in enumerate(past):
        gate.offer([due(-10 * turn - band, band, due_ms=NOW_MS - 10 * SECOND_MS) for band in bands], NOW_MS)
        gate.release(NOW_MS, 1)
    gate.release(NOW_MS, 1_000)
    gate.offer([due(n, p) for n in range(1, 101) for p in (1, 2, 3)], NOW_MS)
    found = priorities(gate.release(NOW_MS, count))
    for band, weight in WEIGHTS.items():
        assert abs(found[band] - count * weight / 10) < 2


def test_a_band_without_work_leaves_its_share_to_the_others() -> None:
    gate = Gate()
    gate.offer([due(n, 1 + 2 * (n % 2)) for n in range(200)], NOW_MS)
    assert priorities(gate.release(NOW_MS, 80)) == {1: 70, 3: 10}


# Order within a band.


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("mail", "push", "sms"))), max_size=60), st.data())
def test_within_a_band_the_earlier_due_goes_first_then_the_earlier_arrival(
    tasks: list[tuple[int, str]], data: st.DataObject
) -> None:
    gate = Gate()
    dues = [due(n, due_ms=NOW_MS + offset, queue=queue) for n, (offset, queue) in enumerate(tasks)]
    while dues:  # what is offered in between is sorted in
        some = data.draw(st.integers(1, len(dues)))
        gate.offer(dues[:some], NOW_MS)
        waiting, dues = sorted(dues[:some], key=lambda one: (one.due_ms, one.filing)), dues[some:]
        limit = data.draw(st.integers(1, 2 * some)) if not dues else len(waiting)
        assert filings(gate.release(NOW_MS, limit)) == filings(waiting[:limit])


def test_one_that_is_late_goes_before_those_that_wait_for_less_long() -> None:
    gate = Gate()
    gate.offer([due(1), due(2), due(3, due_ms=NOW_MS - 1), due(4, due_ms=NOW_MS - 2), due(5)], NOW_MS)
    assert filings(gate.release(NOW_MS, 9)) == [4, 3, 1, 2, 5]


def test_case_58_a_delayed_task_keeps_its_priority() -> None:
    gate = Gate()
    gate.offer([due(n, 2) for n in (1, 2, 3, 4)], NOW_MS)
    released: list[int] = []
    for second in range(5):
        now_ms = NOW_MS + second * SECOND_MS
        if second == 2:
            gate.offer([due(9, 1, due_ms=now_ms)], now_ms)
        released += filings(gate.release(now_ms, 1))
    assert released == [1, 2, 9, 3, 4]


@given(st.permutations((1, 2, 3, 4)), st.integers(0, 4))
def test_what_comes_back_keeps_its_place(order: list[int], newer: int) -> None:
    """Case 58: after a deferral of 1, 2, 3, 4 the order is 1, 2, 3, 4, and what came meanwhile stands behind."""
    gate = Gate()
    dues = {n: due(n) for n in (1, 2, 3, 4)}
    gate.offer(dues.values(), NOW_MS)
    assert filings(gate.release(NOW_MS, 4)) == [1, 2, 3, 4]
    gate.offer([due(100 + n) for n in range(newer)], NOW_MS)
    gate.offer([dues[n] for n in order], NOW_MS + SECOND_MS)
    assert filings(gate.release(NOW_MS + SECOND_MS, 99)) == [1, 2, 3, 4, *range(100, 100 + newer)]


def test_what_comes_back_keeps_the_wait_that_it_had() -> None:
    gate = Gate()
    low = due(1, 3)
    gate.offer([low], NOW_MS)
    assert gate.release(NOW_MS + AGING_MS, 1) == [low]
    gate.offer([low], NOW_MS + AGING_MS)
    gate.offer([due(n, 1) for n in range(2, 9)], NOW_MS + 2 * AGING_MS)
    assert gate.release(NOW_MS + 2 * AGING_MS, 1) == [low]


# Limit.


@given(st.lists(st.integers(1, 3), max_size=50), st.integers(0, 60))
def test_a_round_lets_go_as_many_as_there_are_or_as_it_may(tasks: list[int], limit: int) -> None:
    gate = Gate()
    gate.offer([due(n, priority) for n, priority in enumerate(tasks)], NOW_MS)
    first = gate.release(NOW_MS, limit)
    assert len(first) == min(limit, len(tasks))
    rest = gate.release(NOW_MS, 100)
    assert sorted(filings(first + rest)) == list(range(len(tasks)))
    assert gate.release(NOW_MS, 100) == []
    assert gate.reasons() == {}


# Aging.


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2), st.integers(0, 2)), min_size=5, max_size=60))
def test_a_task_waits_a_bounded_time_under_any_load(loads: list[tuple[int, int, int]]) -> None:
    """Once it has waited (p − 1) × aging it is overtaken by nothing that is due later, but for the other bands' share.

    Each second so many tasks of each priority are due, and one is let go: the backlog only grows.
    """
    aging_ms = 5 * SECOND_MS
    gate = Gate(aging_ms)
    numbers = iter(range(1, 10_000))
    low, ahead, after_aging, aged_ms = due(0, 3), 0, 0, 0
    for second in range(400):
        now_ms = NOW_MS + second * SECOND_MS
        load = loads[second % len(loads)]
        if second == 3:
            ahead = sum(n for _, n in gate.reasons().values())
            low.due_ms, aged_ms = now_ms, now_ms + 2 * aging_ms
            gate.offer([low], now_ms)
        gate.offer(
            [due(next(numbers), p, due_ms=now_ms) for p, n in zip((1, 2, 3), load, strict=True) for _ in range(n)],
            now_ms,
        )
        (released,) = gate.release(now_ms, 1)
        if released is low:
            break
        after_aging += bool(aged_ms) and now_ms >= aged_ms
    else:
        pytest.fail("it starved")
    assert after_aging <= (ahead + 1) * 10 / 7 + 2


def test_a_low_one_moves_up_a_band_for_each_span_of_waiting() -> None:
    for waited, first in ((AGING_MS - 1, 2), (AGING_MS, 1)):
        gate = Gate()
        gate.offer([due(1, 2)], NOW_MS)
        gate.offer([due(2, 1, due_ms=NOW_MS + 1)], NOW_MS + 1)
        assert filings(gate.release(NOW_MS + waited, 1)) == [first]
    for waited, first in ((2 * AGING_MS - 1, 2), (2 * AGING_MS, 1)):
        gate = Gate()
        gate.offer([due(1, 3)], NOW_MS)
        gate.offer([due(2, 1, due_ms=NOW_MS + 1)], NOW_MS + 1)
        assert filings(gate.release(NOW_MS + waited, 1)) == [first]


def test_an_aged_head_opens_its_band_in_the_middle_of_a_round() -> None:
    """The first of a lane is aged, those behind it are not: each is served in the band where it stands itself."""
    gate = Gate()
    gate.offer([due(1, 3, due_ms=NOW_MS)], NOW_MS)
    now_ms = NOW_MS + 2 * AGING_MS
    gate.offer([due(n, 3, due_ms=NOW_MS + 1) for n in range(2, 12)], now_ms)
    gate.offer([due(n, 1, due_ms=now_ms) for n in range(100, 170)], now_ms)
    released = gate.release(now_ms, 33)
    assert released[0].filing == 1
    assert priorities(released[1:]) == {1: 28, 3: 4}


@pytest.mark.parametrize("step_ms", [-3_600_000, -1])
@pytest.mark.parametrize("priority", [1, 2, 3])
def test_a_clock_that_steps_back_moves_no_task_down(step_ms: int, priority: int) -> None:
    gate = Gate()
    gate.offer([due(1, priority), due(2, 1), due(3, 2), due(4, 3)], NOW_MS)
    gate.hold("other", "paused", NOW_MS)
    gate.resume("other", NOW_MS + step_ms)
    assert sorted(filings(gate.release(NOW_MS + step_ms, 9))) == [1, 2, 3, 4]


# Pauses.


def test_a_held_queue_waits_and_says_why() -> None:
    gate = Gate()
    gate.offer([due(1, queue="mail"), due(2, queue="push"), due(3, 1, queue="mail")], NOW_MS)
    gate.hold("mail", "paused by hand", NOW_MS)
    assert gate.reasons() == {"mail": ("paused by hand", 2), "push": ("turn", 1)}
    assert filings(gate.release(NOW_MS, 9)) == [2]
    gate.offer([due(4, queue="mail")], NOW_MS)
    assert gate.release(NOW_MS, 9) == []
    gate.resume("mail", NOW_MS + 1)
    assert sorted(filings(gate.release(NOW_MS + 1, 9))) == [1, 3, 4]


def test_a_second_hold_changes_neither_reason_nor_time_and_a_resume_of_none_does_nothing() -> None:
    gate = Gate()
    gate.resume("mail", NOW_MS)
    gate.hold("mail", "first", NOW_MS)
    gate.hold("mail", "second", NOW_MS + 5)
    gate.offer([due(1)], NOW_MS)
    assert gate.reasons() == {"mail": ("first", 1)}


@given(st.lists(st.tuples(st.booleans(), st.integers(1, AGING_MS)), max_size=12))
def test_what_it_waits_through_a_pause_does_not_count(spans: list[tuple[bool, int]]) -> None:
    """Offered, then spans of time, paused or not: it has moved up exactly if the unpaused ones make a span of aging."""
    gate = Gate()
    gate.offer([due(1, 2, queue="mail")], NOW_MS)
    now_ms, active_ms = NOW_MS, 0
    for paused, span_ms in spans:
        if paused:
            gate.hold("mail", "paused", now_ms)
            gate.resume("mail", now_ms + span_ms)
        now_ms += span_ms
        active_ms += 0 if paused else span_ms
    gate.offer([due(2, 1, due_ms=NOW_MS + 1, queue="push")], now_ms)
    assert filings(gate.release(now_ms, 1)) == [1 if active_ms >= AGING_MS else 2]


def test_one_that_is_offered_during_a_pause_has_not_waited_when_it_ends() -> None:
    gate = Gate()
    gate.hold("mail", "paused", NOW_MS)
    gate.offer([due(1, 2)], NOW_MS + AGING_MS)
    gate.resume("mail", NOW_MS + 9 * AGING_MS)
    gate.offer([due(2, 1, due_ms=NOW_MS + 1, queue="push")], NOW_MS + 9 * AGING_MS)
    assert filings(gate.release(NOW_MS + 10 * AGING_MS - 1, 1)) == [2]
    gate.offer([due(3, 1, due_ms=NOW_MS + 1, queue="push")], NOW_MS + 10 * AGING_MS)
    assert filings(gate.release(NOW_MS + 10 * AGING_MS, 1)) == [1]


# Cancelled ones.


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.integers(-2, 2)), max_size=40))
def test_cancelled_ones_are_neither_let_go_nor_counted(tasks: list[tuple[int, bool, int]]) -> None:
    gate = Gate()
    dues = [due(n, priority, due_ms=NOW_MS + offset) for n, (priority, _, offset) in enumerate(tasks)]
    gate.offer(dues, NOW_MS)
    for one, (_, live, _) in zip(dues, tasks, strict=True):
        one.live = live
    living = {one.filing for one in dues if one.live}
    assert sum(count for _, count in gate.reasons().values()) == len(living)
    assert set(filings(gate.release(NOW_MS, 99))) == living


def test_cancelled_ones_of_a_held_queue_do_not_pile_up() -> None:
    gate = Gate()
    gate.hold("mail", "paused", NOW_MS)
    stays = due(0)
    gate.offer([stays], NOW_MS)
    gone = [due(n) for n in range(1, 4 * DEAD_MIN)]
    for one in gone:
        gate.offer([one], NOW_MS)
        one.live = False
    (lane,) = gate._lanes.values()
    assert len(lane._sorted) + len(lane._astray) <= DEAD_MIN + 2
    gate.resume("mail", NOW_MS)
    assert gate.release(NOW_MS, 9) == [stays]
