from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.loadtest.page import scale

pytestmark = pytest.mark.pure


def test_a_linear_axis_ends_at_a_round_number() -> None:
    axis = scale.linear(0, 437, str)
    assert [tick.text for tick in axis.ticks] == ["0.0", "100.0", "200.0", "300.0", "400.0", "500.0"]
    assert [axis.place(value) for value in (0, 250, 500, 900)] == [0, 0.5, 1, 1]


def test_values_below_zero_have_room() -> None:
    axis = scale.linear(-20, 80, str)
    assert axis.place(-20) == 0
    assert axis.place(0) == pytest.approx(0.2)


@given(st.floats(0, 1e15), st.floats(-1e6, 0))
def test_a_linear_axis_holds_all_and_has_few_ticks(most: float, least: float) -> None:
    axis = scale.linear(least, most, str)
    assert 2 <= len(axis.ticks) <= scale.TICKS_MAX + 3
    assert axis.ticks[0].place == 0
    assert axis.ticks[-1].place == 1


def test_a_logarithmic_axis_is_even_by_powers_of_ten() -> None:
    axis = scale.logarithmic(3, 4_000, lambda value: f"{value:g}")
    assert [tick.text for tick in axis.ticks] == ["1", "10", "100", "1000", "10000"]
    assert axis.place(100) == pytest.approx(0.5)
    assert axis.place(0) == 0, "no logarithm, so at the ground"


@given(st.lists(st.floats(0, 1e300), max_size=30))
def test_any_values_find_an_axis(values: list[float]) -> None:
    axis = scale.fitting(values, str)
    assert all(0 <= axis.place(value) <= 1 for value in values)
    assert 2 <= len(axis.ticks) <= 50


def test_few_large_ones_among_small_make_it_logarithmic() -> None:
    assert scale.fitting([10, 11, 12, 5_000], str).note == scale.LOGARITHMIC
    assert scale.fitting([10, 11, 12, 50], str).note == ""


@pytest.mark.parametrize(
    ("end_ms", "last"), [(86_400_000, "24:00"), (3_600_000, "1:00"), (90_000, "0:01:30"), (1, "0.001 s")]
)
def test_time_has_a_clock_s_steps(end_ms: int, last: str) -> None:
    axis = scale.times(end_ms)
    assert axis.ticks[-1].text == last
    assert 2 <= len(axis.ticks) <= scale.TICKS_TIME_MAX + 1
    assert sum(not tick.fine for tick in axis.ticks) <= 5, "on a phone"


def test_each_nine_is_as_wide_as_the_one_before() -> None:
    axis = scale.nines()
    places = [axis.place(value) for value in (90, 99, 99.9, 99.99)]
    assert [after - before for before, after in pairwise(places)] == pytest.approx([0.2] * 3)
    assert (axis.place(0), axis.place(100)) == (0, 1)
    assert [tick.text for tick in axis.ticks][-2:] == ["99.99 %", "max"]
