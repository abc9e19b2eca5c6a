from typing import Any

import msgspec
import pytest
from minutewheel.loadtest.day import DayReport
from minutewheel.loadtest.day_report import of_day
from minutewheel.loadtest.page import page_of
from minutewheel.loadtest.page.words import verdict_of
from minutewheel.loadtest.report import Report

pytestmark = pytest.mark.pure

DAY: dict[str, Any] = {
    "profile": "day",
    "seed": 3,
    "shards": 8,
    "dispatchers": 2,
    "virtual_minutes": 1_440,
    "turn_ms": 100,
    "changes": {"cancel": 0.015, "late": 0.01},
    "sample": 1_024,
    "parts": 16,
    "parts_played": 16,
    "complete": True,
    "proven": True,
    "tally": {
        "submitted": 2_000,
        "filed": 90,
        "cancelled": 30,
        "moved": 20,
        "fired": 2_040,
        "retried": 40,
        "sampled": 2,
    },
    "waiting": 5,
    "unfinished": 0,
    "minutes_proven": 1_480,
    "virtual_lateness_ms": {"p50": 150, "p99": 199, "p99.9": 1_059, "p99.99": 2_787, "max": 2_799},
    "cpu_us_task": {"figure": 26.5, "budget": 7.2, "met": False},
    "stages_us": {"gate": 4.0, "store": 6.0},
    "checkpoints": 9,
    "checkpoints_per_1000": 9.9,
    "pace": {"tasks_least": 10.0, "checkpoints_least": 11.5, "tasks_most": 31_406.0, "checkpoints_most": 72.2},
    "memory_mb": [50, 64, 65, 73, 75, 90, 93, 94],
    "processes": 2,
    "cpu_s": 8.7,
    "seconds": 29.3,
    "tasks_per_s": 7_100.5,
    "fired_per_minute": [10, 20, 30],
}


def day(tally: dict[str, int] | None = None, **changes: object) -> Report:
    told = {**DAY, **changes, "tally": {**DAY["tally"], **(tally or {})}}
    return of_day(msgspec.convert(told, DayReport), "the command", "1.0")


def test_a_proven_day_keeps_its_figures() -> None:
    report = day()
    assert (report.profile, report.seed, report.command, report.version) == ("day", 3, "the command", "1.0")
    assert report.complete
    assert (report.counts.submitted, report.counts.fired, report.counts.lost) == (2_000, 2_040, 0)
    assert report.lateness.percentiles_ms == ((50, 150), (99, 199), (99.9, 1_059), (99.99, 2_787), (100, 2_799))
    assert report.core_s_per_million == 26.5, "a microsecond a task is a second a million"
    assert report.duration_ms == 86_400_000
    assert report.started_ms % 86_400_000 == 0
    (series,) = report.series
    assert (series.unit, series.step_ms, series.values) == ("tasks/min", 60_000, (10, 20, 30))
    (process,) = report.processes
    assert (process.step_ms, process.memory_mib) == (10_800_000, (50, 64, 65, 73, 75, 90, 93, 94))
    assert "store 6, gate 4" in " ".join(report.remarks)
    assert "not met" in " ".join(report.remarks)
    assert verdict_of(report).tone == "good"


@pytest.mark.parametrize(
    ("tally", "changes", "text"),
    [
        ({"lost": 3}, {}, "3 tasks lost."),
        ({"duplicated": 1}, {}, "1 task fired more than once."),
        ({"early": 2}, {}, "2 tasks fired early."),
        ({"lost": 1, "mismatched": 1}, {}, "1 task lost."),
        ({"mismatched": 2}, {}, "2 tasks lost."),
        ({}, {"unfinished": 4}, "4 tasks lost."),
        ({}, {}, "1 task lost."),
    ],
)
def test_no_day_that_is_not_proven_looks_well(tally: dict[str, int], changes: dict[str, int], text: str) -> None:
    report = day(tally, proven=False, **changes)
    verdict = verdict_of(report)
    assert (verdict.tone, verdict.text) == ("bad", text)
    assert "This day is not proven." in report.remarks


def test_a_day_that_was_interrupted_is_told_to_be_so() -> None:
    report = day(complete=False, proven=False, parts_played=3)
    verdict = verdict_of(report)
    assert verdict.tone == "open"
    assert verdict.more.startswith("Incomplete")
    assert report.environment["parts played"] == "3 of 16"
    assert "This day is not proven." not in report.remarks, "nobody knows yet"


def test_its_page_shows_tasks_per_minute_and_the_memory() -> None:
    page = page_of(day())
    assert "<h3>Throughput</h3>" in page
    assert "tasks/min" in page
    assert "Memory: mean 75.5 MiB, most 94 MiB" in page
    assert "CPU: not measured" in page
    assert "Not in this report: tasks by minute and shard and owners of shards." in page


def test_a_day_of_an_earlier_release_has_no_minutes() -> None:
    assert day(fired_per_minute=[]).series == ()
