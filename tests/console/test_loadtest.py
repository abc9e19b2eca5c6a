from typing import Any

from minutewheel.console import loadtest


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
