"""What comes of a load on this installation, in which processes fail? `minutewheel loadtest run`.

All that makes no sense is refused before anything starts. Ctrl-C, SIGTERM and the end of the terminal end the load, and
what ran is reported; the processes that were started are always ended.
"""

import asyncio
import shlex
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ..loadtest.arrivals import TASKS_MAX, Shape, tasks_of
from ..loadtest.fault_plan import BadPlan, Fault, parse_plan
from ..loadtest.report import Report
from .command import Call, environment_of
from .exits import ExitCode, Failure
from .loadtest_report import check_folders, write_page
from .progress import bars
from .times import length_ms, moment

LEVEL = "MINUTEWHEEL_LOG__LEVEL"

if TYPE_CHECKING:
    from .output import Output


async def run(
    call: Call,
    profile: Annotated[Shape, typer.Option(help="Which load: see docs/loadtest.md.")] = "steady",
    rate: Annotated[float, typer.Option(min=0.1, max=100_000, help="Tasks a second, on average.")] = 20,
    length: Annotated[str, typer.Option("--for", metavar="LENGTH", help="How long, such as 30s or 5m.")] = "30s",
    seed: Annotated[int, typer.Option(help="Of due times, arrivals and payloads.")] = 1,
    dispatchers: Annotated[int, typer.Option(min=1, max=64, help="Processes; embedded has one.")] = 1,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes.")] = 1,
    faults: Annotated[Path | None, typer.Option(metavar="FILE.json", help="What is to fail, and when.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the report to this file too.")] = None,
    page: Annotated[Path | None, typer.Option(help="Draw the report as a page, one HTML file.")] = None,
) -> int:
    """Load an installation, let its processes fail as planned, and say what became of each task.

    The exit code is 1 if a task was lost, fired early or done twice, or if the run was interrupted.
    """
    from ..loadtest.crew import RunFailed
    from ..loadtest.run import Order, run_load
    from . import logs

    given = {"profile": profile, "rate": f"{rate:g}", "for": length, "seed": seed, "dispatchers": dispatchers}
    given |= {"workers": workers, "faults": faults}
    total_ms = _length(call, rate, length, dispatchers)
    check_folders(report, page)
    plan = _plan(faults, dispatchers, workers, total_ms)
    logs.set_up("error", call.settings.log.format, call.output.err)
    total = tasks_of(rate, total_ms)
    with _folders(call) as (scratch, data), _until_signal() as stop:
        settings = call.settings.model_copy(update={"data": data})
        order = Order(
            shape=profile,
            rate=rate,
            length_ms=total_ms,
            seed=seed,
            dispatchers=dispatchers,
            workers=workers,
            plan=plan,
            command=_command(call, given),
            dispatch=("dispatcher",) if settings.mode == "real" else ("dev",),
            options=(f"--data={data}", *([f"--config={call.config}"] if call.config else ())),
            variables={LEVEL: "warning", **environment_of(call)},
        )
        try:
            with bars(call.output, {"submitted": total, "done": total}) as tell:
                told = await run_load(settings, order, scratch, stop, tell)
        except RunFailed as error:
            raise Failure(str(error)) from None
    if report:
        report.write_bytes(msgspec.json.format(msgspec.json.encode(told)))
    if page:
        write_page(told, page)
    if call.output.json:
        call.output.document(told)
    else:
        show(call.output, told)
    return _judged(told)


def _length(call: Call, rate: float, length: str, dispatchers: int) -> int:
    """In milliseconds, if there can be such a run."""
    total_ms = length_ms(length)
    if total_ms < 1_000:
        raise Failure("--for: a run takes at least a second", ExitCode.USAGE)
    if rate * total_ms / 1_000 > TASKS_MAX:
        raise Failure(f"--rate and --for: a run has at most {TASKS_MAX:,} tasks", ExitCode.USAGE)
    if dispatchers > 1 and call.settings.mode == "embedded":
        raise Failure("--dispatchers: mode is embedded, and a data folder has one dispatcher", ExitCode.USAGE)
    return total_ms


def _plan(file: Path | None, dispatchers: int, workers: int, total_ms: int) -> tuple[Fault, ...]:
    if file is None:
        return ()

    def read_ms(text: str) -> int:
        try:
            return length_ms(text)
        except Failure as error:
            raise ValueError(str(error)) from None

    try:
        return parse_plan(file.read_bytes(), {"dispatcher": dispatchers, "worker": workers}, total_ms, read_ms)
    except BadPlan as error:
        raise Failure(f"{file}: {error}", ExitCode.USAGE) from None
    except OSError as error:
        raise Failure(f"--faults: {error}", ExitCode.USAGE) from None


@contextmanager
def _folders(call: Call) -> Iterator[tuple[Path, Path]]:
    """One for logs and records, and the data folder: the one that the command line names, or one in the first."""
    with tempfile.TemporaryDirectory(prefix="minutewheel-loadtest-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch), call.settings.data if call.origins["data"] == "flag" else Path(scratch) / "data"


@contextmanager
def _until_signal() -> Iterator[asyncio.Event]:
    """An event that these signals set, however often they come: ending in haste would leave processes behind."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _command(call: Call, given: Mapping[str, object]) -> str:
    """The command line that does the same again; without secrets."""
    from ..settings import shown

    options = [f"--{name}={value}" for name, value in given.items() if value is not None]
    flagged = {key: value for key, value in shown(call.settings).items() if call.origins[key] == "flag"}
    sets = [f"--set={key}={value}" for key, value in flagged.items() if key != "data"]
    places = [f"--{name}={value}" for name, value in (("config", call.config), ("data", flagged.get("data"))) if value]
    return shlex.join(["minutewheel", "loadtest", "run", *options, *places, *sets])


def show(output: "Output", report: Report) -> None:
    """The result, for a person."""
    counts, cost = report.counts, report.core_s_per_million
    late = [
        f"{f'p{percent:g}' if percent < 100 else 'max'} {ms:,} ms" for percent, ms in report.lateness.percentiles_ms
    ]
    output.fields(
        [
            *((name, f"{getattr(counts, name):,}") for name in counts.__struct_fields__),
            ("lateness", ", ".join(late)),
            ("cost", "" if cost is None else f"{cost:,.0f} core seconds for a million tasks"),
            ("took", f"{report.duration_ms / 1_000:.1f} s from {moment(report.started_ms)}"),
        ]
    )
    for band in report.bands:
        at_s = (band.from_ms - report.started_ms) / 1_000
        output.line(f"at {at_s:.1f} s: {band.what} {band.whom}, over after {(band.to_ms - band.from_ms) / 1_000:.1f} s")
    for remark in report.remarks:
        output.line(f"- {remark}")


def _judged(report: Report) -> int:
    counts = report.counts
    if not report.complete:
        raise Failure("interrupted: the report is of the part that ran")
    if counts.lost or counts.early or counts.duplicated:
        raise Failure("this is not as it should be: see lost, early and duplicated")
    return ExitCode.OK
