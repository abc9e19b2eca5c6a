"""What do all commands have in common?

A command is a function whose first argument is a `Call`: the settings it runs under and where it writes. `command`
makes it one, adds the options that every command has, runs it (in an event loop if it waits), and turns what it
raises into one line and an exit code.
"""

import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer

from .exits import ExitCode, Failure, failure_of, unexpected
from .output import Output

COMMON = "Common options"
INTERRUPTED = 130
HELP = {"help_option_names": ["-h", "--help"]}
Answer = int | None | Coroutine[Any, Any, int | None]
F = TypeVar("F", bound=Callable[..., Answer])


@dataclass(frozen=True)
class Call:
    """One run of a command. `settings` is a `settings.Settings`, `origins` says where each value came from, `config`
    which file was named on the command line."""

    settings: Any
    origins: Mapping[str, str]
    output: Output
    config: Path | None = None


def common_options(
    *,
    data: Annotated[
        Path | None, typer.Option(help="The data folder (the setting `data`).", rich_help_panel=COMMON)
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="The settings file, else minutewheel.toml.", rich_help_panel=COMMON)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting.", rich_help_panel=COMMON)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print data as JSON.", rich_help_panel=COMMON)] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=COMMON)
    ] = False,
) -> None:
    """The options that every command has."""


COMMON_PARAMETERS = inspect.signature(common_options).parameters


def command(app: typer.Typer, name: str | None = None) -> Callable[[F], F]:
    """Make a command of the function, under its own name if no other is given."""

    def register(function: F) -> F:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]

        def run(**given: Any) -> None:
            raise typer.Exit(_perform(function, given))

        run.__name__ = function.__name__
        run.__doc__ = function.__doc__
        parameters = [*own, *COMMON_PARAMETERS.values()]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name, context_settings=HELP)(run)
        return function

    return register


def _perform(function: Callable[..., Answer], given: dict[str, Any]) -> int:
    common = {name: given.pop(name) for name in COMMON_PARAMETERS}
    output = Output(json=common["json"])
    try:
        loaded = _settings(common)
        answer = function(Call(loaded.settings, loaded.origins, output, common["config"]), **given)
        code = run_loop(answer) if isinstance(answer, Coroutine) else answer
        output.out.flush()
    except BrokenPipeError:
        _give_up_output()
        return ExitCode.OK
    except KeyboardInterrupt:
        _end_at_once()
    except Exception as error:
        if common["debug"]:
            raise
        failure = failure_of(error) or unexpected(error)
        output.error(str(failure))
        return failure.code
    return code or ExitCode.OK


def _settings(common: Mapping[str, Any]) -> Any:
    from ..settings import load

    given: dict[str, object] = {}
    for text in common["set_"] or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise Failure("--set takes KEY=VALUE", ExitCode.USAGE)
        given[key.strip()] = value
    if common["data"] is not None:
        given["data"] = common["data"]
    return load(given, common["config"])


def environment_of(call: Call) -> dict[str, str]:
    """What a process is told that is to have the same settings, and reads the same file: what the flags said, but for
    the data folder. As variables, for a password would be seen on a command line."""
    from ..settings import keys, variable

    flagged = [key for key in keys() if call.origins[key] == "flag" and key != "data"]
    return {variable(key): _text(attrgetter(key)(call.settings)) for key in flagged}


def _text(value: Any) -> str:
    """A setting as it is written in the environment."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value)


def run_loop(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Run it on the fast event loop."""
    import uvloop

    return uvloop.run(work)


def _end_at_once() -> NoReturn:
    """A thread may still be reading from a terminal or a pipe, and the interpreter would wait for it."""
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(INTERRUPTED)


def _give_up_output() -> None:
    """Whoever read our output has left: neither this nor the interpreter's end may complain."""
    with suppress(OSError):
        sys.stdout.close()
