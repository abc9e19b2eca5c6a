"""Which commands are there? The entry point of `minutewheel`; each command's work is in the module of its group."""

from importlib.metadata import version
from typing import Annotated

import typer

from . import (
    config,
    dead,
    demo,
    dev,
    doctor,
    fleet,
    listing,
    loadtest,
    loadtest_report,
    loadtest_run,
    queue,
    shards,
    submit,
    tasks,
    worker,
)
from .command import HELP, command


def group(help_: str) -> typer.Typer:
    return typer.Typer(help=help_, no_args_is_help=True, rich_markup_mode=None, context_settings=HELP)


app = typer.Typer(
    name="minutewheel",
    help="Run tasks at their time. Begin with `minutewheel demo`, then `minutewheel dev`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
)
queues = group("Declare queues.")
dead_letters = group("See to tasks that will not be tried again.")
settings = group("Look at the settings.")
load_tests = group("Measure.")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"minutewheel {version('minutewheel')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Run tasks at their time. Begin with `minutewheel demo`, then `minutewheel dev`."""


command(app)(dev.dev)
command(app)(demo.demo)
command(app)(submit.submit)
command(app)(tasks.cancel)
command(app)(tasks.reschedule)
command(app)(tasks.get)
command(app, "list")(listing.list_)
command(app)(listing.audit)
command(app)(fleet.dispatcher)
command(app)(worker.worker)
command(app)(fleet.setup)
command(app)(doctor.doctor)
command(app)(shards.shards)
app.add_typer(queues, name="queue")
command(queues, "put")(queue.put)
command(queues, "list")(queue.list_)
app.add_typer(dead_letters, name="dead")
command(dead_letters, "list")(dead.list_)
command(dead_letters, "redrive")(dead.redrive)
command(dead_letters, "drop")(dead.drop)
app.add_typer(settings, name="config")
command(settings, "show")(config.show)
command(settings, "reference")(config.reference)
command(settings, "contracts")(config.contracts)
app.add_typer(load_tests, name="loadtest")
command(load_tests, "wheel")(loadtest.wheel)
command(load_tests, "day")(loadtest.day)
command(load_tests, "report")(loadtest_report.report)
command(load_tests, "run")(loadtest_run.run)
command(load_tests, "intake")(loadtest.intake)
command(load_tests, "fire")(loadtest.fire)
command(load_tests, "load")(loadtest.load)
command(load_tests, "lifecycle")(loadtest.lifecycle)


def main() -> None:
    app()
