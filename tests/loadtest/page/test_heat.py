import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.loadtest.page.frame import course_of
from minutewheel.loadtest.page.heat import COLUMNS_MAX, LEVELS, heat_chart, shard_axis, steps_of
from minutewheel.loadtest.report import Heat, Report

pytestmark = pytest.mark.pure


@given(st.lists(st.integers(0, 10**9), max_size=50))
def test_each_count_has_a_level_and_more_is_never_a_lower_one(counts: list[int]) -> None:
    steps = steps_of(counts)
    levels = [steps.level(count) for count in sorted(counts)]
    assert levels == sorted(levels)
    assert all(0 <= level <= LEVELS for level in levels)
    assert all((level == 0) == (count == 0) for level, count in zip(levels, sorted(counts), strict=True))
    assert len(steps.texts()) == len(steps.ends) + 1


def test_steps_are_even_or_multiples_where_few_minutes_are_far_fuller() -> None:
    assert steps_of([0, 40, 70]).ends == (10, 20, 30, 40, 50, 60, 70)
    assert steps_of([1, *[10] * 9, 10_000_000]).ends == (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    assert steps_of([0, 2]).texts() == ["0", "1", "2"]


def drawn(report: Report, *rows: tuple[int, ...]) -> str:
    heat = Heat(first_minute=report.started_ms // 60_000, fired=rows)
    return heat_chart(msgspec.structs.replace(report, heat=heat), heat, course_of(report))


def test_neighbours_of_one_level_are_one_stroke(full_report: Report) -> None:
    told = drawn(full_report, (0, 7), (7, 7), (7, 7))
    assert re.findall(r'd="([^"]*)" class="heat h(\d)"', told) == [
        ("M0 0.5h1", "0"),
        *[("", str(level)) for level in range(1, 7)],
        ("M1 0.5h2M0 1.5h3", "7"),
    ]
    assert '<th scope="row">1</th><td>21</td><td>7</td><td>7</td>' in told
    assert "at most 7 tasks, in shard" in told


def test_of_too_many_minutes_some_share_a_column_and_their_tasks_are_added(full_report: Report) -> None:
    told = drawn(full_report, *[(1,)] * (2 * COLUMNS_MAX + 1))
    assert "a column is 3 minutes" in told
    assert "tasks in 3 min" in told
    assert "at most 3 tasks" in told


def test_shards_are_counted_from_the_top() -> None:
    axis = shard_axis(64, 8)
    assert [tick.text for tick in axis.ticks] == ["0", "8", "16", "24", "32", "40", "48", "56"]
    assert axis.ticks[0].place > axis.ticks[-1].place
