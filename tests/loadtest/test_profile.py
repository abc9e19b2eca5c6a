"""Is a profile a stream that says the same whenever it is asked, and as many tasks as it was made for?"""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.loadtest.profile import BIG_TENANT, CAMPAIGN, DAY, LEAD_MS_MAX, NINE, TENANTS, Name, Profile
from minutewheel.store.task import MINUTE_MS, SHARDS

pytestmark = pytest.mark.pure

MIDNIGHT_MS = 29_846_880 * MINUTE_MS
NAMES = get_args(Name)
BILLION = 10**9


@given(st.sampled_from(NAMES), st.integers(0, 10**10))
def test_the_minutes_have_as_many_tasks_as_asked_for_in_all(name: Name, tasks: int) -> None:
    profile = Profile(name, tasks, 1, MIDNIGHT_MS)
    counts = [profile.of_minute(minute) for minute in range(profile.minutes)]
    assert sum(counts) == tasks
    assert min(counts) >= 0


@given(st.sampled_from(NAMES), st.integers(0, 10**9), st.integers(0, DAY - 1))
def test_the_shards_share_a_minute_evenly(name: Name, tasks: int, minute: int) -> None:
    profile = Profile(name, tasks, 1, MIDNIGHT_MS)
    counts = [profile.of_shard(shard, minute) for shard in range(SHARDS)]
    assert sum(counts) == profile.of_minute(minute)
    assert max(counts) - min(counts) <= 1


@given(st.sampled_from(NAMES), st.integers(0, SHARDS - 1), st.integers(0, DAY - 1), st.integers(0, 9))
def test_due_times_ascend_within_their_minute_and_are_the_same_again(
    name: Name, shard: int, minute: int, seed: int
) -> None:
    profile = Profile(name, 10**7, seed, MIDNIGHT_MS)
    dues = list(profile.dues(shard, minute))
    start_ms = MIDNIGHT_MS + minute * MINUTE_MS
    assert dues == sorted(dues) == list(Profile(name, 10**7, seed, MIDNIGHT_MS).dues(shard, minute))
    assert len(dues) == profile.of_shard(shard, minute)
    assert all(start_ms <= due_ms < start_ms + MINUTE_MS for due_ms in dues)


def test_another_seed_gives_other_times() -> None:
    one, other = (Profile("steady", 10**7, seed, MIDNIGHT_MS).dues(0, 5) for seed in (1, 2))
    assert list(one) != list(other)


def test_the_day_has_a_hundred_thousand_a_second_at_nine_and_peaks_at_full_and_half_hours() -> None:
    profile = Profile("day", BILLION, 1, MIDNIGHT_MS)
    assert profile.of_minute(NINE) == 6_000_000
    for hour in range(24):
        if hour != 9:
            assert profile.of_minute(60 * hour) > 3 * profile.of_minute(60 * hour + 1)
        assert profile.of_minute(60 * hour + 30) > 1.8 * profile.of_minute(60 * hour + 31)
    dues = profile.dues(0, 10 * 60)
    assert dues.count(dues[0]) >= len(dues) // 2, "half of a peak is due at once"
    assert profile.of_minute(15 * 60 + 1) > 4 * profile.of_minute(3 * 60 + 1)


def test_a_campaign_is_two_million_of_one_tenant_at_once() -> None:
    profile = Profile("campaign", BILLION, 1, MIDNIGHT_MS)
    sizes = [profile.campaign(shard, NINE) for shard in range(SHARDS)]
    assert abs(sum(sizes) - CAMPAIGN) <= SHARDS
    dues = profile.dues(0, NINE)
    assert set(dues[: sizes[0]]) == {MIDNIGHT_MS + NINE * MINUTE_MS}
    assert len(dues) > sizes[0] > 0 == profile.campaign(0, NINE + 1)
    assert {profile.small(NINE, place) for place in range(5_000)} == set(range(TENANTS))
    assert len(BIG_TENANT) == 5


@given(st.sampled_from(NAMES), st.integers(0, SHARDS - 1), st.integers(NINE - 30, NINE + 30))
def test_changes_come_before_their_tasks_are_due_and_for_no_task_twice(name: Name, shard: int, minute: int) -> None:
    profile = Profile(name, 10**8, 3, MIDNIGHT_MS, range(NINE - 30, NINE + 31))
    dues = profile.dues(shard, minute)
    changes = profile.changes(shard, minute, dues)
    assert changes == profile.changes(shard, minute, dues)
    of_dues = [change for change in changes if change.kind != "late"]
    assert len({change.place for change in of_dues}) == len(of_dues)
    for change in of_dues:
        due_ms = dues[change.place]
        assert profile.start_ms <= change.at_ms <= due_ms
        assert due_ms - change.at_ms <= LEAD_MS_MAX
        assert change.due_ms == due_ms if change.kind == "cancel" else change.due_ms > due_ms
    for change in changes:
        if change.kind == "late":
            assert change.at_ms < change.due_ms


@pytest.mark.parametrize("name", NAMES)
def test_as_many_changes_come_as_the_mix_says(name: Name) -> None:
    profile = Profile(name, 10**8, 3, MIDNIGHT_MS)
    counts = dict.fromkeys(("cancel", "reschedule", "late"), 0)
    tasks = 0
    for minute in range(NINE + 1, NINE + 21):
        dues = profile.dues(7, minute)
        tasks += len(dues)
        for change in profile.changes(7, minute, dues):
            counts[change.kind] += 1
    mix = profile.mix
    for kind, share in (("cancel", mix.cancel), ("reschedule", mix.reschedule), ("late", mix.late)):
        assert abs(counts[kind] - share * tasks) <= 20, kind


@given(st.integers(1, 20_000_000))
def test_the_stretch_around_nine_is_the_shortest_with_so_many_tasks(tasks: int) -> None:
    whole = Profile("day", BILLION, 1, MIDNIGHT_MS)
    span = whole.around_nine(0, tasks)
    part = Profile("day", BILLION, 1, MIDNIGHT_MS, span)
    held = sum(part.of_shard(0, minute) for minute in range(whole.minutes))
    assert NINE in span
    if held < tasks:
        assert span == range(DAY)
    elif len(span) > 1:
        assert held - max(part.of_shard(0, span[0]), part.of_shard(0, span[-1])) < tasks
