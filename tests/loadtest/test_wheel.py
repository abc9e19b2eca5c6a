import json
import sys

import pytest
from minutewheel.loadtest.contenders import CONTENDERS
from minutewheel.loadtest.wheel import WheelReport, run_wheel_benchmark

TASKS = 5_000


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def report(told: list[str]) -> WheelReport:
    return run_wheel_benchmark(TASKS, 7, told.append, rounds=1)


def test_the_report_has_the_shape_that_is_promised(report: WheelReport) -> None:
    printed = json.loads(json.dumps(report.to_dict()))
    for name in CONTENDERS:
        assert {"load_s", "fire_s", "cancel_s", "late_s", "bytes_per_task", "worst_tick_ms"} <= set(printed[name])
    assert set(printed["ratios"]) == set(CONTENDERS) - {"wheel"}
    for ratios in printed["ratios"].values():
        assert {"fire", "load", "memory"} <= set(ratios)
        assert all(ratio > 0 for ratio in ratios.values())
    assert printed["bytes_per_task"] == printed["wheel"]["bytes_per_task"]
    assert printed["gc_collections"] == printed["wheel"]["gc_collections"] == 0


def test_every_contender_fires_all_that_is_not_cancelled(report: WheelReport) -> None:
    assert report.late == TASKS // 10
    assert 0.08 * TASKS < report.cancelled < 0.12 * TASKS
    for measure in (report.wheel, report.heapq, report.sortedcontainers, report.call_at):
        assert measure.fired == TASKS + report.late - report.cancelled


def test_progress_is_told_what_runs(report: WheelReport, told: list[str]) -> None:
    assert report.rounds == 1
    assert [line.split(",")[0] for line in told] == list(CONTENDERS)


@pytest.mark.pure
def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sortedcontainers", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'minutewheel\[loadtest\]'"):
        run_wheel_benchmark(TASKS, 1)
