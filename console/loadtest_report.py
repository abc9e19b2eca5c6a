"""How does the report of a load test become a page that can be looked at?"""

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import Call
from .exits import ExitCode, Failure

if TYPE_CHECKING:
    from ..loadtest.day import DayReport
    from ..loadtest.report import Report


def report(
    call: Call,
    file: Annotated[Path, typer.Argument(help="The report as JSON, as --report wrote it.", metavar="FILE.json")],
    out: Annotated[Path | None, typer.Option(help="The page, else FILE.html.", metavar="FILE.html")] = None,
) -> None:
    """Draw the page of a saved report: one HTML file, which needs nothing else."""
    from ..loadtest.saved import NotAReport, report_of

    try:
        told = report_of(file.read_bytes())
    except OSError as error:
        raise Failure(f"{file} can not be read: {error.strerror}", ExitCode.USAGE) from None
    except NotAReport as error:
        raise Failure(f"{file} is not the report of a load test: {error}", ExitCode.USAGE) from None
    page = out or file.with_suffix(".html")
    if page.exists() and page.samefile(file):
        raise Failure(f"the page would overwrite the report, {file}: name another with --out", ExitCode.USAGE)
    size = write_page(told, page)
    if call.output.json:
        call.output.document({"page": str(page), "bytes": size})
    else:
        call.output.line(f"{page} ({size:,} bytes)")


def check_folders(*files: Path | None) -> None:
    """`Failure` if there is none for one of these: a run of hours must not end in that."""
    for file in files:
        if file and not file.parent.is_dir():
            raise Failure(f"there is no folder for {file}", ExitCode.USAGE)


def write_page(told: "Report", page: Path) -> int:
    """And how many bytes it has."""
    from ..loadtest.page import page_of

    return page.write_bytes(page_of(told).encode())


def write_day(played: "DayReport", command: str, page: Path) -> None:
    from ..loadtest.day_report import of_day

    write_page(of_day(played, command, version("minutewheel")), page)
