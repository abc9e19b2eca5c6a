from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.wheel.index import RunIndex
from minutewheel.wheel.run import INTEGERS, Run

pytestmark = pytest.mark.pure


def run_of(first_ms: int, last_ms: int, filing: int = 1, minute: int = 0) -> Run:
    return Run(minute, array(INTEGERS, [first_ms, last_ms]), array(INTEGERS, [filing, filing]), [b"first", b"last"])


bounds = st.tuples(st.integers(0, 100), st.integers(1, 60)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(st.lists(bounds, max_size=20), st.sets(st.integers(0, 19)))
def test_each_run_is_found_by_its_own_tasks_and_only_while_it_is_in(
    spans: list[tuple[int, int]], gone: set[int]
) -> None:
    index = RunIndex()
    runs = [run_of(*span, filing) for filing, span in enumerate(spans)]
    for run in runs:
        index.add(run)
    for filing, run in enumerate(runs):
        if filing in gone:
            index.discard(run)
    for filing, ((first_ms, last_ms), run) in enumerate(zip(spans, runs, strict=True)):
        found = [index.find(first_ms, filing), index.find(last_ms, filing)]
        assert found == ([None, None] if filing in gone else [(run, 0), (run, 1)])
    assert set(index) == {run for filing, run in enumerate(runs) if filing not in gone}


@given(st.lists(bounds, max_size=12), st.integers(0, 170), st.integers(0, 1))
def test_the_enclosing_run_is_of_the_minute_and_holds_the_time(
    spans: list[tuple[int, int]], due_ms: int, minute: int
) -> None:
    index = RunIndex()
    for number, span in enumerate(spans):
        index.add(run_of(*span, minute=number % 2))
    run = index.enclosing(minute, due_ms)
    candidates = [span for number, span in enumerate(spans) if number % 2 == minute and span[0] <= due_ms <= span[1]]
    assert (run is None) == (not candidates)
    if run is not None:
        assert run.minute == minute
        assert run.encloses(due_ms)


def test_the_ends_of_the_widest_run_are_enclosed_too() -> None:
    index = RunIndex()
    widest = run_of(100, 200)
    index.add(widest)
    index.add(run_of(150, 160))
    assert index.enclosing(0, 200) is widest
    assert index.enclosing(0, 100) is widest
    assert index.enclosing(0, 99) is None
    assert index.enclosing(0, 201) is None


@given(st.lists(bounds, min_size=1, max_size=6), st.lists(st.integers(0, 1_000), max_size=8))
def test_a_stretched_run_is_found_by_what_joined_it(spans: list[tuple[int, int]], joining: list[int]) -> None:
    index = RunIndex()
    runs = [run_of(*span) for span in spans]
    for run in runs:
        index.add(run)
    # A run that begins with one task takes any due time.
    open_run = Run(0, array(INTEGERS, [500]), array(INTEGERS, [1]), [b"x"])
    index.add(open_run)
    for filing, due_ms in enumerate(joining, 10):
        index.stretch(open_run, due_ms)
        open_run.insert(due_ms, filing, b"y")
    for filing, due_ms in enumerate(joining, 10):
        found = index.find(due_ms, filing)
        assert found is not None
        assert found[0] is open_run


def test_one_wide_run_widens_the_walk_only_while_it_is_there() -> None:
    index = RunIndex()
    wide = run_of(0, 10**12, filing=5)
    narrow = [run_of(n * 100, n * 100 + 50) for n in range(1, 50)]
    for run in (wide, *narrow):
        index.add(run)
    assert index.find(10**12, 5) == (wide, 1)
    index.discard(wide)
    assert index.find(10**12, 5) is None
    assert index._span_ms_max == 50
