"""How are tasks submitted from the command line: one by flags, or many from a file or a pipe?"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .command import Call
from .exits import ExitCode, Failure
from .progress import bars
from .times import length_ms

if TYPE_CHECKING:
    from ..broker.compose import Submission
    from ..wiring import Installation
    from .lines import BadLine, Totals
    from .output import Output

ONE = "One task"
LINE_BYTES_BESIDE_PAYLOAD = 65_536


async def submit(
    call: Call,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Where it goes.", rich_help_panel=ONE)] = None,
    id_: Annotated[str | None, typer.Option("--id", help="Its id; without it a new one is made.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose it is; without it `default`.")] = None,
    in_: Annotated[str | None, typer.Option("--in", metavar="LENGTH", help="Due so long from now: 5s, 1h30m.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Due then: RFC 3339 with an offset.")] = None,
    due_ms: Annotated[int | None, typer.Option(help="Due then: ms since 1970.")] = None,
    payload: Annotated[str | None, typer.Option("--payload", "-p", help="JSON, or @file for any bytes.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A header; repeatable.")] = None,
    priority: Annotated[int | None, typer.Option(help="1 (first) to 3; without it 2.")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Starts in total; without it 5.")] = None,
    timeout_: Annotated[
        str | None, typer.Option("--timeout", metavar="LENGTH", help="The longest that one start may take.")
    ] = None,
    expires: Annotated[str | None, typer.Option(metavar="TIME", help="It does not start after this.")] = None,
    on_conflict: Annotated[str | None, typer.Option(help="If the id is taken: reject, replace or keep.")] = None,
    answer: Annotated[bool, typer.Option("--answer", help="Wait for what its dispatcher made of it.")] = False,
    within: Annotated[str, typer.Option(metavar="LENGTH", help="Wait for that so long.")] = "10s",
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="One submission in JSON a line; - is stdin.")
    ] = None,
) -> int:
    """Submit one task by flags, or many with --file.

    It returns when the tasks are accepted: from then on they are not lost. A bad line is told with its number, code
    and reason, the others are submitted, and the exit code is 3.
    """
    from ..wiring import opened

    if file is not None:
        if any(value is not None for value in (queue, id_, tenant, in_, at, due_ms, payload, header)):
            raise Failure("with --file, all is said in its lines", ExitCode.USAGE)
        async with opened(call.settings) as installation:
            return await submit_file(installation, file, call.output)
    if queue is None:
        raise Failure("--queue is missing (or --file)", ExitCode.USAGE)
    wanted = submission_of(
        queue=queue,
        task_id=id_,
        tenant=tenant,
        due=_due(in_, at, due_ms),
        payload=_payload(payload),
        headers=_headers(header),
        priority=priority,
        max_attempts=max_attempts,
        timeout_ms=None if timeout_ is None else length_ms(timeout_),
        expires=expires,
        on_conflict=on_conflict,
    )
    async with opened(call.settings) as installation:
        if answer:
            return await _submit_answered(installation, wanted, length_ms(within), call.output)
        return await _submit_one(installation, wanted, call.output)


def submission_of(*, task_id: str | None, due: tuple[int | str | None, int | None], **fields: Any) -> "Submission":
    """The value that the client submits; all of it is checked there."""
    import uuid

    from ..broker.compose import Submission

    given = {name: value for name, value in fields.items() if value is not None}
    return Submission(id=task_id or uuid.uuid4().hex, due=due[0], delay_ms=due[1], **given)


async def _submit_one(installation: "Installation", wanted: "Submission", output: "Output") -> int:
    accepted = await installation.client().submit(wanted)
    if output.json:
        output.document({"key": accepted.key, "accepted_ms": accepted.time_ms, "partition": accepted.partition})
    else:
        output.line(accepted.key)
    await _note_nobody(installation, output)
    return ExitCode.OK


async def _submit_answered(installation: "Installation", wanted: "Submission", within_ms: int, output: "Output") -> int:
    from .tasks import tell

    return tell(await installation.client().submit_answered(wanted, within_ms=within_ms), output)


async def _note_nobody(installation: "Installation", output: "Output") -> None:
    if not await installation.coordinator.members():
        serves = "dev" if installation.settings.mode == "embedded" else "dispatcher"
        output.note(f"accepted, but no dispatcher serves {installation.place}: `minutewheel {serves}` does")


async def submit_file(installation: "Installation", path: Path, output: "Output") -> int:
    """Submit the lines of a file, or of standard input for `-`."""
    from ..broker.compose import Composer
    from .lines import read_lines, submit_lines

    composer = Composer(installation.topics, installation.limits)
    with _opened(path) as (file, size), bars(output, {"bytes": size}) as tell:
        so_far: list[Totals] = []

        def told(totals: "Totals") -> None:
            so_far[:] = [totals]
            tell("bytes", totals.bytes)

        try:
            totals = await submit_lines(
                read_lines(file, 2 * installation.limits.payload_bytes + LINE_BYTES_BESIDE_PAYLOAD),
                composer,
                installation.broker,
                installation.check_queue,
                refused=lambda bad: _tell_bad(bad, output),
                told=told,
            )
        except asyncio.CancelledError:
            last = so_far[0].last_line if so_far else 0
            output.note(f"stopped: all good lines up to line {last} are accepted, later ones perhaps")
            raise
    _tell_totals(totals, output)
    await _note_nobody(installation, output)
    if totals.failed:
        return ExitCode.FAILED
    return ExitCode.REFUSED if totals.refused else ExitCode.OK


def _tell_bad(bad: "BadLine", output: "Output") -> None:
    if output.json:
        output.document(bad)
    else:
        field = f" ({bad.field})" if bad.field else ""
        output.note(f"line {bad.line}: {bad.code}{field}: {bad.message}")


def _tell_totals(totals: "Totals", output: "Output") -> None:
    counts = {
        "submitted": totals.lines,
        "accepted": totals.accepted,
        "refused": totals.refused,
        "not_accepted": totals.failed,
    }
    if output.json:
        output.document(counts)
    else:
        output.line(", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in counts.items()))


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BufferedIOBase, int | None]]:
    """The file, and its size if it has one."""
    if str(path) == "-":
        yield cast("BufferedIOBase", sys.stdin.buffer), None
        return
    with path.open("rb") as file:
        yield file, path.stat().st_size or None


def _due(in_: str | None, at: str | None, due_ms: int | None) -> tuple[int | str | None, int | None]:
    """The due time and the delay, of which one is given; due at once without any."""
    if sum(value is not None for value in (in_, at, due_ms)) > 1:
        raise Failure("--in, --at and --due-ms exclude each other", ExitCode.USAGE)
    if in_ is not None:
        return None, length_ms(in_)
    if at is None and due_ms is None:
        return None, 0
    return (due_ms if at is None else at), None


def _payload(text: str | None) -> bytes:
    """The payload's bytes: a file's as they are, or JSON as it was written."""
    import msgspec

    if text is None:
        return b""
    if text.startswith("@"):
        return Path(text[1:]).read_bytes()
    try:
        msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Failure(
            "the payload is no JSON: a text needs quotation marks of its own, '\"like this\"'", ExitCode.USAGE
        ) from None
    return text.encode()


def _headers(pairs: list[str] | None) -> dict[str, str]:
    headers = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise Failure("--header takes NAME=VALUE", ExitCode.USAGE)
        headers[name] = value
    return headers
