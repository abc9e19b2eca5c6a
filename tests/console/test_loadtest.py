from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from minutewheel.console import loadtest
from minutewheel.console.exits import ExitCode, Failure


def test_a_small_wheel_benchmark_prints_what_it_must(desk: Any) -> None:
    call, screen = desk.call()
    loadtest.wheel(call, tasks=2_000, seed=3, rounds=1)
    (document,) = screen.documents
    assert {
        "wheel",
        "heapq",
        "sortedcontainers",
        "asyncio.call_at",
        "bytes_per_task",
        "gc_collections",
    } <= document.keys()
    assert {"fire", "load", "memory"} <= document["ratios"]["heapq"].keys()
    assert (document["tasks"], document["seed"]) == (2_000, 3)
    call, screen = desk.call(json=False)
    loadtest.wheel(call, tasks=2_000, seed=3, rounds=1)
    assert "\theapq\tsortedcontainers\tasyncio.call_at\n" in screen.text()


def test_a_report_becomes_a_row_a_figure() -> None:
    report = {"tasks": 94_000, "fast": {"speed": {"figure": 70_000.5, "budget": 60_000, "met": True}}}
    late = {"late": {"p50_ms": {"figure": 16.0, "budget": 15, "met": False}}}
    assert list(loadtest.rows_of({**report, **late})) == [
        ["tasks", "94,000", "", ""],
        ["fast.speed", "70,000.5", "60,000", "yes"],
        ["late.p50_ms", "16.0", "15", "NO"],
    ]


@pytest.mark.parametrize(
    ("text", "count"), [("1e9", 10**9), ("2000000", 2_000_000), ("1_000", 1_000), ("2.5e4", 25_000)]
)
def test_a_number_of_tasks_has_either_form(text: str, count: int) -> None:
    assert loadtest.count_of(text) == count


@pytest.mark.parametrize("text", ["many", "", "999", "-1e6", "1.5", "1e11", "nan", "inf"])
def test_what_is_no_number_of_tasks_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        loadtest.count_of(text)


def test_a_day_that_is_not_virtual_is_refused(desk: Any) -> None:
    call, _ = desk.call()
    with pytest.raises(Failure, match="--virtual") as refused:
        loadtest.day(call, tasks=1_000)
    assert refused.value.code == ExitCode.USAGE


def test_a_day_prints_its_report_and_writes_it_where_it_is_told_to(desk: Any, tmp_path: Path) -> None:
    call, screen = desk.call()
    file = tmp_path / "report.json"
    loadtest.day(call, tasks=1_000, virtual=True, profile="steady", processes=1, folder=tmp_path / "kept", report=file)
    (document,) = screen.documents
    assert document["proven"]
    assert document["tally"]["submitted"] >= 1_000
    assert msgspec.json.decode(file.read_bytes()) == document
    call, screen = desk.call(json=False)
    loadtest.day(call, tasks=1_000, virtual=True, profile="steady", processes=1, folder=tmp_path / "kept")
    assert "proven\tTrue" in screen.text()


def test_a_day_that_is_not_proven_fails(desk: Any, tmp_path: Path) -> None:
    call, screen = desk.call()
    with pytest.raises(Failure, match="not proven") as failed:
        loadtest.day(
            call, tasks=1_000, virtual=True, profile="steady", processes=1, folder=tmp_path / "kept", plant="duplicate"
        )
    assert failed.value.code == ExitCode.FAILED
    assert screen.documents[0]["tally"]["duplicated"] == 1


def test_a_folder_of_another_day_is_refused(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    call, _ = desk.call()
    with pytest.raises(Failure, match="another run") as refused:
        loadtest.day(call, tasks=1_000, virtual=True, folder=tmp_path)
    assert refused.value.code == ExitCode.USAGE
