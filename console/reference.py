"""What is there to set, and to say on the command line? The two references in docs/, drawn from the code itself."""

from collections.abc import Iterator
from typing import Any

HEAD_OF_SETTINGS = """\
# Settings

Every setting has one name, and a value from the first of these that gives one:

1. the command line: `--set dispatcher.lead_ms=20000` (and `--data` for `data`),
2. the environment: `MINUTEWHEEL_DISPATCHER__LEAD_MS=20000`,
3. the file `minutewheel.toml` in the working folder, or the one that `--config` or `MINUTEWHEEL_CONFIG` names:
   `lead_ms = 20000` under `[dispatcher]`,
4. the default.

A name that does not exist is an error that says which one was meant. So is a set of values that can't work together:
all of them are told at the start. `minutewheel config show --origin` prints what is in force, and where each value
came from; secrets are shown as stars, and no message repeats a value. Times are in milliseconds, paths are from the
working folder. Variables that Kubernetes makes for a service of our name (`MINUTEWHEEL_SERVICE_HOST` …) are left alone.

What must fit together:

- `dispatcher.checkpoint_ms` ≤ `checkpoint_relaxed_ms` ≤ `checkpoint_ms_max` ≤ `unrecorded_ms_max`
- `dispatcher.batch_max` ≤ `read_ahead`
- `worker.renew_ms` ≤ half of `hold_ms`: a hold outlasts one renewal that fails
- `limits.payload_bytes` with all headers fits into `broker.max_message_bytes`; `header_bytes` + 16 × `headers` < 65536
- `retention.worker_outage_ms` < `due_ms` < `ledger_ms`, and `tasks_ms` ≥ `worker_outage_ms`: while a due record may
  still be delivered, the ledger knows whether it has run

`durability = "kill"` is several times as fast on a slow disk, since nothing waits for it; what was acknowledged in the
last moments may be lost with the power. The data folder holds payloads: it is made for its owner alone.
"""

HEAD_OF_COMMANDS = """\
# Commands

Data goes to standard output, all else to standard error. With `--json`, data are JSON, one document a line; numbers
that may exceed 2⁵³ (filings) are text. What people sent is shown with every control character spelt out; `NO_COLOR`
is heeded. An error is one line; `--debug` shows its traceback.

A task is named by its key as it is printed, `<tenant>/<id>`, or by an id of the tenant `default`; with `--tenant`, the
argument is an id as it stands. A LENGTH of time is `250ms`, `5s`, `1h30m`, `2d`. A TIME is RFC 3339 with an offset. A
MINUTE is a time in it, its number, or `now`.

Exit codes:

| code | meaning |
| --- | --- |
"""


def settings() -> str:
    """docs/configuration.md."""
    return HEAD_OF_SETTINGS + "".join(f"{line}\n" for line in _settings())


def commands() -> str:
    """docs/cli.md."""
    return HEAD_OF_COMMANDS + "".join(f"{line}\n" for line in (*_codes(), *_commands()))


def _settings() -> Iterator[str]:
    from ..settings import Settings, leaves, shown

    defaults = shown(Settings())
    section = None
    for key, field in leaves():
        above, _, name = key.rpartition(".")
        if above != section:
            section = above
            yield ""
            yield f"## {above or 'The installation'}"
            yield ""
            if above:
                yield from (_first_paragraph(Settings.model_fields[above].annotation.__doc__), "")
            yield from ("| name | default | what it is |", "| --- | --- | --- |")
        yield f"| `{name}` | {_default(defaults[key])} | {field.description} |"


def _default(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return f"`{value}`" if value not in ("", []) else "none"


def _codes() -> Iterator[str]:
    from .exits import ExitCode

    meanings = {
        ExitCode.OK: "it was done",
        ExitCode.FAILED: "it was not done, or what was checked does not hold",
        ExitCode.USAGE: "the command line or the settings make no sense",
        ExitCode.REFUSED: "some of the input was refused; the rest was taken",
        ExitCode.NOT_FOUND: "there is no such task, or no data folder, or the fleet is not set up",
        ExitCode.IN_USE: "another dispatcher has the data folder",
        ExitCode.NO_ANSWER: "the command was accepted, but nobody answered in time: is a dispatcher running?",
    }
    for code in ExitCode:
        yield f"| {code.value} | {meanings[code]} |"
    yield "| 130 | it was interrupted |"


def _commands() -> Iterator[str]:
    """All commands with the options of their own, then those that all have."""
    import typer.main

    from .cli import app
    from .command import COMMON

    found = list(_leaves("minutewheel", typer.main.get_command(app)))
    for name, command in found:
        own = [parameter for parameter in command.params if not _is_common(parameter, COMMON)]
        arguments = "".join(f" {one.metavar or one.name.upper()}" for one in own if not one.opts[0].startswith("-"))
        yield from ("", f"## `{name}{arguments}`", "", _paragraphs(command.help))
        yield from _options(own)
    shared = [parameter for parameter in found[0][1].params if _is_common(parameter, COMMON)]
    yield from ("", "## Options of all commands")
    yield from _options(shared)


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _leaves(f"{path} {name}", inner)
    if not hasattr(command, "commands"):
        yield path, command


def _is_common(parameter: Any, panel: str) -> bool:
    return getattr(parameter, "rich_help_panel", None) == panel


def _options(parameters: list[Any]) -> Iterator[str]:
    options = [parameter for parameter in parameters if parameter.help and parameter.name != "help"]
    if not options:
        return
    yield from ("", "| option | default | what it is |", "| --- | --- | --- |")
    for parameter in options:
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        default = "" if parameter.default in (None, False) or parameter.required else f"{parameter.default}"
        yield f"| {names} | {default} | {parameter.help} |"


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (text or "").split("\n\n"))
