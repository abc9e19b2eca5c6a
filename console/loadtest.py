"""How fast is it on this machine? The load tests, from the command line."""

from typing import TYPE_CHECKING, Annotated

import typer

from .command import Call
from .exits import Failure

if TYPE_CHECKING:
    from ..loadtest.wheel import WheelReport
    from .output import Output

FIGURES = ("load", "load_lists", "fire", "fire_ticks", "cancel", "late", "worst_tick", "memory")


def wheel(
    call: Call,
    tasks: Annotated[int, typer.Option(min=1_000, max=10_000_000, help="Tasks of the minute.")] = 375_000,
    seed: Annotated[int, typer.Option(help="Of the due times.")] = 1,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="Each figure is the best of so many rounds.")] = 3,
) -> None:
    """Measure the timing wheel beside heapq, sortedcontainers and asyncio.call_at."""
    from ..loadtest.wheel import run_wheel_benchmark

    try:
        report = run_wheel_benchmark(tasks, seed, call.output.note if call.output.live else None, rounds=rounds)
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from None
    if call.output.json:
        call.output.document(report.to_dict())
    else:
        _show(report, call.output)


def _show(report: "WheelReport", output: "Output") -> None:
    output.line(
        f"{report.tasks:,} tasks of {report.record_bytes} bytes, {report.late:,} late, {report.cancelled:,} cancelled"
    )
    output.line(f"{report.bytes_per_task:.0f} bytes a task, {report.gc_collections} collections while loading")
    output.line("how many times as fast the wheel is (memory: its share)")
    rows = ([figure, *(f"{getattr(ratio, figure):.2f}" for ratio in report.ratios.values())] for figure in FIGURES)
    output.table(("", *report.ratios), rows)
