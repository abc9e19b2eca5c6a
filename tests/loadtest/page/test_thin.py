import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.loadtest.page.thin import thinned

pytestmark = pytest.mark.pure


def test_a_spike_and_a_hole_of_one_step_in_a_day_stay_where_they_were() -> None:
    values = [10.0] * 86_400
    values[40_000], values[70_001] = 9_000.0, 0.0
    line = thinned(values)
    assert (40_000, 9_000.0) in line.points
    assert (70_001, 0.0) in line.points
    assert len(line.points) <= 1_000
    assert line.steps == 173


def test_few_steps_are_drawn_as_they_are() -> None:
    line = thinned([1.0, None, 3.0])
    assert line.points == ((0, 1.0), None, (2, 3.0))
    assert line.steps == 1


def test_a_column_in_which_nothing_was_measured_is_a_gap() -> None:
    line = thinned([1.0] * 10 + [None] * 10 + [2.0] * 10, columns=6)
    assert line.steps == 5
    assert [point and point[1] for point in line.points] == [1, 1, None, None, 2, 2]


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), max_size=300), st.integers(1, 40))
def test_the_extremes_are_kept_in_the_order_of_time(values: list[float | None], columns: int) -> None:
    known = [value for value in values if value is not None]
    points = [point for point in thinned(values, columns).points if point]
    assert points == sorted(points, key=lambda point: point[0])
    assert all(values[int(step)] == value for step, value in points)
    assert {min(known), max(known)} <= {value for _, value in points} if known else not points
