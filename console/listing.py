"""How does one look at many tasks: those of some minutes, those that run, those that are dead?"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Call
from .exits import ExitCode, Failure
from .times import minute, minute_text, moment

if TYPE_CHECKING:
    from ..store.minutes import Audit, Row
    from ..wiring import Installation
    from .output import Output

MINUTES_MAX = 1_440
MINUTES_DEFAULT = 10
MISSING_SHOWN = 100
Limit = Annotated[int, typer.Option(min=0, help="At most so many; 0 is all.")]
Minute = Annotated[str | None, typer.Option("--minute", metavar="MINUTE", help="A moment in it, its number, or `now`.")]


async def list_(
    call: Call,
    minute_: Minute = None,
    from_: Annotated[str | None, typer.Option("--from", metavar="MINUTE", help="The first minute.")] = None,
    to: Annotated[str | None, typer.Option(metavar="MINUTE", help="The last minute.")] = None,
    running: Annotated[bool, typer.Option("--running", help="What workers run now, by the ledger.")] = False,
    dead: Annotated[bool, typer.Option("--dead", help="Dead letters.")] = False,
    limit: Limit = 1_000,
) -> int:
    """List the tasks of some minutes; without options, of this one and the next ten.

    Each filing has a row: waiting, fired or removed. A closed minute has no rows any more: see `audit`.
    """
    from ..wiring import opened

    by_time = [value for value in (minute_, from_, to) if value is not None]
    if running + dead + bool(by_time) > 1:
        raise Failure("--running, --dead and the minutes exclude each other", ExitCode.USAGE)
    async with opened(call.settings, create=False) as installation:
        if running:
            return await list_running(installation, limit, call.output)
        if dead:
            from .dead import list_dead

            return await list_dead(installation, limit, call.output)
        minutes = minutes_of(minute_, from_, to, installation.clock.now_ms())
        return await list_minutes(installation, minutes, limit, call.output)


async def audit(
    call: Call,
    minute_: Annotated[str, typer.Option("--minute", metavar="MINUTE", help="A moment in it, its number, or `now`.")],
) -> int:
    """Audit a minute: what was filed in it, fired, removed, and what is missing.

    After its close the numbers are those of its closing record. The exit code is 1 if something is missing.
    """
    from ..store.minutes import audit_of
    from ..wiring import opened
    from .patience import PatientReads

    async with opened(call.settings, create=False) as installation:
        now_ms = installation.clock.now_ms()
        found = await audit_of(PatientReads(installation.store), minute(minute_, now_ms), now_ms)
    show_audit(found, call.output)
    return ExitCode.FAILED if found.missing else ExitCode.OK


def minutes_of(one: str | None, first: str | None, last: str | None, now_ms: int) -> range:
    """The minutes that are meant; `Failure` if they are none, or too many."""
    if one is not None:
        if first is not None or last is not None:
            raise Failure("--minute and --from … --to exclude each other", ExitCode.USAGE)
        number = minute(one, now_ms)
        return range(number, number + 1)
    start = minute(first or "now", now_ms)
    end = start + MINUTES_DEFAULT if last is None else minute(last, now_ms)
    if not 0 <= end - start < MINUTES_MAX:
        raise Failure(f"--from is before --to, and they span at most {MINUTES_MAX} minutes", ExitCode.USAGE)
    return range(start, end + 1)


async def list_minutes(installation: "Installation", minutes: range, limit: int, output: "Output") -> int:
    from ..store.minutes import rows_of
    from .patience import PatientReads

    rows: list[Row] = []
    cut = False
    async for row in rows_of(PatientReads(installation.store), minutes):
        if limit and len(rows) == limit:
            cut = True
            break
        rows.append(row)
    if output.json:
        for row in rows:
            output.document(row)
    else:
        heads = ("minute", "due", "key", "queue", "attempt", "shard", "state")
        output.table(heads, ([*_shown(row)] for row in rows))
    if cut:
        output.note(f"there are more than {limit}: --limit 0 lists all")
    return ExitCode.OK


def _shown(row: "Row") -> tuple[object, ...]:
    due = moment(row.due_ms)
    return minute_text(row.minute), due, row.key, row.queue, row.attempt, row.shard, row.state


async def list_running(installation: "Installation", limit: int, output: "Output") -> int:
    running = await installation.ledger.running(installation.clock.now_ms())
    shown = running[: limit or None]
    rows: list[dict[str, Any]] = [
        {"queue": place[0], "shard": place[1], "minute": place[2], "filing": str(filing), "worker": holder, "starts": n}
        for place, filing, holder, n in shown
    ]
    if output.json:
        for row in rows:
            output.document(row)
    else:
        heads = ("queue", "shard", "minute", "filing", "worker", "starts")
        output.table(heads, (list(row.values()) for row in rows))
    if len(running) > len(shown):
        output.note(f"there are more than {limit}: --limit 0 lists all")
    return ExitCode.OK


def show_audit(audit: "Audit", output: "Output") -> None:
    import msgspec

    if output.json:
        output.document({**msgspec.to_builtins(audit), "state": audit.state})
        return
    output.fields(
        [
            ("minute", f"{minute_text(audit.minute)} ({audit.minute})"),
            ("state", audit.state if audit.over else f"{audit.state}, not over yet"),
            ("rows", audit.rows),
            ("fired", audit.fired),
            ("removed", audit.removed),
            ("fired late", audit.late),
            ("waiting", audit.waiting),
            ("missing", len(audit.missing)),
        ]
    )
    if audit.missing:
        shown = audit.missing[:MISSING_SHOWN]
        output.table(
            ("missing", "due", "shard", "filing"), ((r.key, moment(r.due_ms), r.shard, r.filing) for r in shown)
        )
        if len(shown) < len(audit.missing):
            output.note(f"and {len(audit.missing) - len(shown)} more: --json names all")
