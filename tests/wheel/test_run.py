import sys
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.wheel.run import INTEGERS, Run

pytestmark = pytest.mark.pure

BORDER_MS = 412 << 32  # a time (in 2026) at which the high half of a due time changes


def run_of(*tasks: tuple[int, int]) -> Run:
    dues, filings = zip(*tasks, strict=True)
    return Run(7, array(INTEGERS, dues), array(INTEGERS, filings), [record_of(*task) for task in tasks])


def record_of(due_ms: int, filing: int) -> bytes:
    return b"%d/%d" % (due_ms, filing)


def reference_counts(records: list[bytes]) -> list[int]:
    return [sys.getrefcount(record) for record in records]


spans = st.sampled_from([0, 1, 60_000, 2**32 - 1, 2**32, 2**40])
tasks = st.builds(
    lambda base, span, parts, filings: sorted(
        (base + span * part // 100, filing) for part, filing in zip(parts, filings, strict=False)
    ),
    st.sampled_from([0, 1, BORDER_MS - 1, BORDER_MS - 30_000, BORDER_MS, 253_402_300_000_000]),
    spans,
    st.lists(st.integers(0, 100), min_size=1, max_size=30),
    st.lists(st.integers(0, 2**63 - 1), min_size=30, max_size=30, unique=True),
)


@given(tasks)
def test_what_is_taken_is_what_was_put_whatever_the_span(page: list[tuple[int, int]]) -> None:
    run = run_of(*page)
    assert run.head_ms == page[0][0]
    fired = run.take(page[-1][0], len(page))
    assert fired.minute == 7
    assert list(zip(fired.dues, fired.filings, strict=True)) == page
    assert fired.records == [record_of(*task) for task in page]
    assert not run


@given(tasks, st.integers(0, 100), st.integers(1, 30))
def test_take_stops_at_the_time_and_at_the_limit(page: list[tuple[int, int]], part: int, limit: int) -> None:
    until_ms = page[part * (len(page) - 1) // 100][0]
    expected = [task for task in page if task[0] <= until_ms][:limit]
    run = run_of(*page)
    fired = run.take(until_ms, limit)
    assert list(zip(fired.dues, fired.filings, strict=True)) == expected
    assert len(run) == len(page) - len(expected)


@given(tasks)
def test_every_task_is_found_and_no_other(page: list[tuple[int, int]]) -> None:
    run = run_of(*page)
    held = set(page)
    for due_ms, filing in page:
        index = run.find(due_ms, filing)
        assert index is not None
        assert run.records[index] == record_of(due_ms, filing)
        for other in ((due_ms + 1, filing), (due_ms - 1, filing), (due_ms, filing - 1), (due_ms, filing + 1)):
            assert (run.find(*other) is not None) == (other in held)


def test_what_is_fired_is_not_found_any_more() -> None:
    run = run_of((10, 1), (10, 2), (20, 3))
    run.take(10, 1)
    assert run.find(10, 1) is None
    assert run.find(10, 2) == 1


def test_an_insertion_keeps_the_order_by_due_then_filing() -> None:
    run = run_of((10, 5), (20, 5), (30, 5))
    for task in ((20, 9), (20, 1), (10, 7), (30, 2)):
        run.insert(*task, record_of(*task))
    fired = run.take(30, 100)
    pairs = list(zip(fired.dues, fired.filings, strict=True))
    assert pairs == [(10, 5), (10, 7), (20, 1), (20, 5), (20, 9), (30, 2), (30, 5)]
    assert fired.records == [record_of(*task) for task in pairs]


def test_a_run_encloses_the_times_between_its_head_and_its_tail() -> None:
    run = run_of((BORDER_MS + 10, 1), (BORDER_MS + 20, 2), (BORDER_MS + 30, 3))
    run.take(BORDER_MS + 10, 1)
    enclosed = [due_ms for due_ms in range(41) if run.encloses(BORDER_MS + due_ms)]
    assert enclosed == list(range(20, 31))


def test_a_cut_gives_up_the_tail() -> None:
    run = run_of((10, 1), (10, 2), (20, 3))
    assert run.cut(run.index_of(10, 2)) == [record_of(10, 2), record_of(20, 3)]
    assert len(run) == 1
    assert run.find(10, 2) is None


def test_a_record_is_let_go_as_soon_as_it_is_fired_or_dropped() -> None:
    records = [bytes([65 + n]) * 100 for n in range(4)]
    before = reference_counts(records)
    run = Run(7, array(INTEGERS, [10, 20, 30, 40]), array(INTEGERS, [1, 2, 3, 4]), records[:])
    assert reference_counts(records) == [count + 1 for count in before]
    run.pop(1)
    run.cut(2)
    run.take(10, 1)
    assert reference_counts(records) == [before[0], before[1], before[2] + 1, before[3]]


def test_offsets_take_half_the_space_unless_the_page_spans_a_border() -> None:
    assert run_of((BORDER_MS, 1), (BORDER_MS + 60_000, 2)).offsets.itemsize == 4
    assert run_of((BORDER_MS - 1, 1), (BORDER_MS + 60_000, 2)).offsets.itemsize == 8
