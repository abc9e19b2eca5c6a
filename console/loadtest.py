"""How fast is it on this machine? The load tests, from the command line."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from msgspec import Struct

from ..loadtest.profile import Name
from ..loadtest.virtual.plants import Plant
from .command import Call
from .exits import ExitCode, Failure
from .loadtest_report import check_folders, write_day
from .progress import Tell, bars

if TYPE_CHECKING:
    from ..loadtest.day import DayReport
    from ..loadtest.virtual.parts import Plan
    from ..loadtest.wheel import WheelReport
    from .output import Output

TASKS_MAX = 10_000_000_000
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


async def intake(
    call: Call,
    tasks: Annotated[int, typer.Option(min=10, max=1_000_000, help="Submissions, due within few minutes.")] = 100_000,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Shards that they fall into.")] = 4,
) -> None:
    """Measure how submissions are filed, on the real services: within few minutes, and each in a minute of its own."""
    from ..loadtest.intake import run_intake

    totals = {"submitted": tasks, "filed": tasks}
    await _measured(call, totals, lambda tell: run_intake(call.settings, tasks, shards, tell))


async def fire(
    call: Call,
    tasks: Annotated[int, typer.Option(min=10, max=1_000_000, help="Tasks that are due all at once.")] = 240_000,
    seconds: Annotated[int, typer.Option(min=1, max=600, help="How long the paced run goes on.")] = 20,
    shards: Annotated[int, typer.Option(min=1, max=64, help="Shards that they fall into.")] = 4,
) -> None:
    """Measure how a loaded wheel is fired at the real Kafka: flat out, and at the pace of the reference load."""
    from ..loadtest.fire import PACE_PER_S, run_fire

    most = max(tasks, seconds * PACE_PER_S)
    totals = dict.fromkeys(("submitted", "filed", "loaded", "fired"), most)
    await _measured(call, totals, lambda tell: run_fire(call.settings, tasks, seconds, shards, tell))


async def load(
    call: Call,
    tasks: Annotated[int, typer.Option(min=10, max=190_000, help="Rows of the bucket.")] = 94_000,
) -> None:
    """Measure how one large bucket comes from the real Cassandra into the wheel."""
    from ..loadtest.load import run_load

    totals = dict.fromkeys(("submitted", "filed", "loaded"), tasks)
    await _measured(call, totals, lambda tell: run_load(call.settings, tasks, tell))


async def lifecycle(
    call: Call,
    tasks: Annotated[int, typer.Option(min=1, max=1_000_000, help="Tasks that are due at once.")] = 20_000,
) -> None:
    """Measure whole lives: submitted, accepted, fired, run by a worker and done, on the real services."""
    from ..loadtest.lifecycle import run_lifecycle

    totals = dict.fromkeys(("accepted", "run", "done"), tasks)
    await _measured(call, totals, lambda tell: run_lifecycle(call.settings, tasks, tell))


def count_of(text: str) -> int:
    """A number of tasks, in either of two forms: 1000000 or 1e6."""
    try:
        count = float(text.replace("_", ""))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no number (1000000 and 1e6 are)") from None
    if not (count.is_integer() and 1_000 <= count <= TASKS_MAX):
        raise typer.BadParameter(f"from 1000 to {TASKS_MAX:,} whole tasks can be played, not {text}")
    return int(count)


def day(
    call: Call,
    tasks: Annotated[int, typer.Option(parser=count_of, metavar="NUMBER", help="How many, such as 1e9.")] = 1_000_000,
    virtual: Annotated[bool, typer.Option("--virtual", help="In virtual time: the only way there is.")] = False,
    profile: Annotated[Name, typer.Option(help="Which load: see docs/loadtest.md.")] = "day",
    seed: Annotated[int, typer.Option(help="Of due times, tenants and changes.")] = 1,
    processes: Annotated[int, typer.Option(min=0, max=256, help="Side by side; 0 is one for each core.")] = 0,
    parts: Annotated[int, typer.Option(min=1, max=96, help="Hand-overs of each dispatcher, and steps of the run.")] = 8,
    turn_ms: Annotated[int, typer.Option("--turn", min=10, max=1_000, help="Virtual milliseconds of a turn.")] = 100,
    folder: Annotated[
        Path | None, typer.Option(help="Where what is done is kept, to go on after an interruption.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report to this file too, as JSON.")] = None,
    page: Annotated[Path | None, typer.Option(help="Draw the report as a page, one HTML file.")] = None,
    plant: Annotated[Plant | None, typer.Option(help="Put in a fault, to see it found.")] = None,
) -> None:
    """Play a day of so many tasks in virtual time, and prove that each fired once, and none early."""
    from ..loadtest.day import OtherRun, cores, plan_of, run_day, scratch_of, tasks_of

    if not virtual:
        raise Failure("a day is played in virtual time: say --virtual", ExitCode.USAGE)
    check_folders(report, page)
    plan = plan_of(profile, tasks, seed, parts=parts, turn_ms=turn_ms, plant=plant)
    kept = folder or scratch_of(plan)
    try:
        with bars(call.output, {"fired": tasks_of(plan)}) as tell:
            played = run_day(plan, kept, processes or cores(), tell)
    except OtherRun as error:
        raise Failure(str(error), ExitCode.USAGE) from None
    plain = msgspec.to_builtins(played)
    if report:
        report.write_bytes(msgspec.json.format(msgspec.json.encode(plain)))
    if call.output.json:
        call.output.document(plain)
    else:
        shown = {name: value for name, value in plain.items() if name != "fired_per_minute"}
        call.output.table(("", "figure", "budget", "met"), rows_of(shown))
    if page:
        write_day(played, _command_of(plan, tasks, parts), page)
    _judge(played, kept)


def _command_of(plan: "Plan", tasks: int, parts: int) -> str:
    """Which plays the same day again."""
    words = ["minutewheel loadtest day --virtual", f"--tasks {tasks} --profile {plan.profile} --seed {plan.seed}"]
    words += [f"--parts {parts} --turn {plan.turn_ms}", f"--plant {plan.plant}" if plan.plant else ""]
    return " ".join(filter(None, words))


def _judge(played: "DayReport", kept: Path) -> None:
    if not played.complete:
        done = f"{played.parts_played} of {played.parts} parts are done"
        raise Failure(f"interrupted: {done}, and kept in {kept}; the same command goes on from there")
    if not played.proven:
        raise Failure("not proven: see lost, duplicated, early, mismatched and unfinished")


async def _measured(
    call: Call, totals: Mapping[str, int | None], run: Callable[[Tell], Coroutine[Any, Any, Struct]]
) -> None:
    """Run it, with bars where a person watches, and print its report. The exit code tells no budget."""
    from ..loadtest.stage import LoadTestFailed
    from . import logs

    logs.set_up("error", call.settings.log.format, call.output.err)
    try:
        with bars(call.output, totals) as tell:
            report = await run(tell)
    except LoadTestFailed as error:
        raise Failure(str(error), ExitCode.FAILED) from None
    plain = msgspec.to_builtins(report)
    if call.output.json:
        call.output.document(plain)
    else:
        call.output.table(("", "figure", "budget", "met"), rows_of(plain))


def rows_of(report: Mapping[str, Any], above: str = "") -> Iterator[list[str]]:
    """A row for each figure of a report: its dotted name, itself, and what the budget says if there is one."""
    for name, value in report.items():
        if isinstance(value, bool | str | list):
            yield [above + name, str(value), "", ""]
        elif not isinstance(value, dict):
            yield [above + name, f"{value:,}", "", ""]
        elif "budget" in value:
            yield [above + name, f"{value['figure']:,}", f"{value['budget']:,}", "yes" if value["met"] else "NO"]
        else:
            yield from rows_of(value, f"{above}{name}.")


def _show(report: "WheelReport", output: "Output") -> None:
    output.line(
        f"{report.tasks:,} tasks of {report.record_bytes} bytes, {report.late:,} late, {report.cancelled:,} cancelled"
    )
    output.line(f"{report.bytes_per_task:.0f} bytes a task, {report.gc_collections} collections while loading")
    output.line("how many times as fast the wheel is (memory: its share)")
    rows = ([figure, *(f"{getattr(ratio, figure):.2f}" for ratio in report.ratios.values())] for figure in FIGURES)
    output.table(("", *report.ratios), rows)
