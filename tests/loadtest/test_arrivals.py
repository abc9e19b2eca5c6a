from collections import Counter

import pytest
from minutewheel.loadtest.arrivals import AHEAD_MS, Arrival, Shape, arrivals, tasks_of
from minutewheel.loadtest.profile import BIG_TENANT

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("shape", ["steady", "day", "campaign", "soak", "retry-storm"])
def test_there_are_as_many_as_the_rate_says_in_the_order_of_their_arrival(shape: Shape) -> None:
    plan = arrivals(shape, 25, 8_000, 3)
    assert len(plan) == tasks_of(25, 8_000) == 200
    assert len({one.id for one in plan}) == 200
    assert [one.at_ms for one in plan] == sorted(one.at_ms for one in plan)
    assert plan[0].at_ms >= 0
    assert max(one.due_ms for one in plan) < 8_000 + AHEAD_MS[1]


def test_each_arrives_a_while_before_it_is_due() -> None:
    ahead = [one.due_ms - one.at_ms for one in arrivals("day", 50, 10_000, 1)]
    assert AHEAD_MS[0] <= min(ahead) < max(ahead) <= AHEAD_MS[1]


def test_the_seed_alone_decides() -> None:
    def plan(seed: int) -> list[Arrival]:
        return arrivals("campaign", 20, 5_000, seed)

    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


def test_steady_is_steady_and_a_day_is_not() -> None:
    def per_second(shape: Shape) -> list[int]:
        return sorted(Counter(one.due_ms // 1_000 for one in arrivals(shape, 50, 24_000, 1)).values())

    steady, day = per_second("steady"), per_second("day")
    assert steady[-1] <= 1.3 * steady[0]
    assert day[-1] > 3 * day[0]


def test_a_campaign_is_due_in_one_millisecond_and_arrives_over_seconds() -> None:
    plan = arrivals("campaign", 100, 10_000, 1)
    big = [one for one in plan if one.tenant == BIG_TENANT]
    assert 100 < len(big) <= 200, "a fifth of all, rounded down shard by shard"
    assert len({one.due_ms for one in big}) == 1
    assert max(one.at_ms for one in big) - min(one.at_ms for one in big) > 1_000


def test_a_soak_has_large_payloads_and_half_a_task_is_one() -> None:
    assert max(one.payload_bytes for one in arrivals("soak", 20, 10_000, 1)) == 4_000
    assert len(arrivals("steady", 0.1, 1_000, 1)) == 1


def test_in_a_retry_storm_three_of_ten_attempts_fail_for_an_hour() -> None:
    plan = arrivals("retry-storm", 300, 24_000, 1)
    storm = [one.failures for one in plan if (one.due_ms - AHEAD_MS[1]) // 1_000 == 9]
    failing = sum(1 for one in plan if one.failures)
    assert sum(map(bool, storm)) == pytest.approx(0.3 * 300, abs=30)
    assert set(storm) == {0, 1, 2}
    assert failing - sum(map(bool, storm)) == pytest.approx(0.02 * 23 * 300, abs=60)
    assert not any(one.failures for one in arrivals("steady", 25, 24_000, 1))
