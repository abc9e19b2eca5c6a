import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.loadtest.figures import at_least, at_most, lateness, percentile

pytestmark = pytest.mark.pure

SOME = st.lists(st.integers(-1_000, 1_000_000), min_size=1, max_size=300)


def test_time_may_reach_its_budget_and_speed_must() -> None:
    assert at_most(1.5, 1.5).met
    assert not at_most(1.501, 1.5).met
    assert at_least(60_000, 60_000).met
    assert not at_least(59_999.9, 60_000).met


@given(SOME, st.integers(1, 100))
def test_a_percentile_is_the_smallest_that_so_many_are_not_above(values: list[int], percent: int) -> None:
    ordered = sorted(values)
    found = percentile(ordered, percent)
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)


@given(SOME)
def test_the_highest_lateness_is_told_without_a_budget(values: list[int]) -> None:
    told = lateness(values, 15, 60)
    assert told.max_ms == max(values) == percentile(sorted(values), 100)
    assert told.p50_ms.figure <= told.p99_ms.figure <= told.max_ms
    assert (told.p50_ms.budget, told.p99_ms.budget) == (15, 60)
