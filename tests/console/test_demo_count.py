import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.console.demo_count import Percentiles, Start, count, percentiles

pytestmark = pytest.mark.pure

dues = st.dictionaries(st.sampled_from([f"t/{n}" for n in range(8)]), st.integers(0, 100), min_size=1)
starts = st.lists(st.builds(Start, st.sampled_from([f"t/{n}" for n in range(9)]), st.just("k"), st.integers(0, 100)))


@given(dues, starts)
def test_the_numbers_agree_with_a_plain_count(accepted: dict[str, int], begun: list[Start]) -> None:
    report = count(len(accepted), accepted, begun, accepted, 1.0)
    times = {key: [s.start_ms for s in begun if s.key == key] for key in accepted}
    assert report.done == sum(bool(ms) for ms in times.values())
    assert report.lost == sum(not ms for ms in times.values())
    assert report.duplicated == sum(max(0, len(ms) - 1) for ms in times.values())
    assert report.early == sum(ms < accepted[key] for key, each in times.items() for ms in each)
    once_and_in_time = all(len(ms) == 1 and ms[0] >= accepted[key] for key, ms in times.items())
    assert report.good == once_and_in_time


def test_what_was_not_accepted_or_not_fired_is_not_good() -> None:
    accepted, begun = {"t/1": 5}, [Start("t/1", "k", 6)]
    assert count(1, accepted, begun, {"t/1": 5}, 0).good
    assert not count(2, accepted, begun, {"t/1": 5}, 0).good
    assert not count(1, accepted, begun, {}, 0).good


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=300))
def test_percentiles_are_nearest_ranks(values: list[int]) -> None:
    found = percentiles(values)
    assert found.max == max(values)
    for value, percent in ((found.p50, 50), (found.p99, 99)):
        assert sum(one <= value for one in values) * 100 >= percent * len(values)
        assert sum(one < value for one in values) * 100 < percent * len(values)


def test_percentiles_of_nothing() -> None:
    assert percentiles([]) == Percentiles(0, 0, 0)
