import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.kafka_run import Run
from minutewheel.broker.wire import Record

pytestmark = pytest.mark.pure


def records(*offsets: int) -> list[Record]:
    return [Record("t", 0, offset, 0, None, b"%d" % offset) for offset in offsets]


def added(run: Run, *offsets: int, end: int = 0) -> None:
    run.add(records(*offsets), offsets[-1] + 1, end, 10 * len(offsets))


def test_a_new_run_has_heard_nothing_and_says_nothing() -> None:
    run = Run(5)
    assert run.take(5, 10) is None
    assert not run.heard
    assert [run.covers(offset) for offset in (4, 5, 6)] == [False, True, False]


def test_records_are_given_from_the_offset_on_up_to_the_limit() -> None:
    run = Run(0)
    added(run, 0, 1, 2)
    assert run.take(1, 1) == (records(1), 2)
    assert run.take(1, 10) == (records(1, 2), 3)


def test_the_next_offset_lies_past_the_gap_before_a_record() -> None:
    run = Run(0)
    added(run, 0, 7)
    assert run.take(0, 1) == (records(0), 1)
    assert run.take(1, 10) == (records(7), 8)


def test_an_end_behind_a_gap_counts_as_reached() -> None:
    run = Run(0)
    added(run, 0, end=3)
    assert not run.at_end
    run.reach_end(3)
    assert run.take(0, 10) == (records(0), 3)
    assert run.take(1, 10) == ([], 3)
    assert run.take(3, 10) is None
    assert run.at_end


def test_what_comes_after_the_end_takes_the_reader_from_it() -> None:
    run = Run(0)
    run.reach_end(0)
    added(run, 0, end=9)
    assert not run.at_end
    assert run.end_offset == 9


def test_what_is_let_go_is_not_covered_any_more() -> None:
    run = Run(0)
    added(run, 0, 1, 2, 3)
    run.let_go(2)
    assert (run.start, len(run), run.size) == (2, 2, 20)
    assert not run.covers(1)
    assert run.take(2, 10) == (records(2, 3), 4)


def test_the_last_answer_can_be_given_once_more() -> None:
    run = Run(0)
    added(run, 0, 1, 2, 3)
    run.let_go(2)
    first = run.take(2, 2)
    run.let_go(2)
    assert run.take(2, 2) == first


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30),
    st.integers(0, 4),
    st.integers(1, 7),
    st.data(),
)
def test_a_reader_gets_each_record_once_however_they_come(
    steps: list[int], last_gap: int, limit: int, data: st.DataObject
) -> None:
    offsets = [sum(steps[: n + 1]) - 1 for n in range(len(steps))]
    end = offsets[-1] + 1 + last_gap
    run, at, got, come = Run(0), 0, [], 0
    while at < end:
        taken = run.take(at, limit)
        if taken is None:
            more = data.draw(st.integers(1, 9))
            if come < len(offsets):
                added(run, *offsets[come : come + more])
                come += more
            else:
                run.reach_end(end)
            continue
        some, after = taken
        assert len(some) <= limit
        assert after > at
        got += some
        at = after
        run.let_go(at)
    assert [record.offset for record in got] == offsets
    assert len(run) == 0
