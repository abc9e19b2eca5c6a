"""How does one see a task, and change one's mind about it?"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Call
from .exits import ExitCode, Failure
from .names import Key, Tenant, tenant_and_id
from .times import length, length_ms, minute_text, moment

if TYPE_CHECKING:
    from ..broker.receipt import Receipt
    from ..worker import TaskView
    from .output import Output

Within = Annotated[str, typer.Option(metavar="LENGTH", help="Wait so long for the answer.")]
In = Annotated[str | None, typer.Option("--in", metavar="LENGTH", help="Due so long from now: 5s, 1h30m.")]
At = Annotated[str | None, typer.Option(metavar="TIME", help="Due then: RFC 3339 with an offset.")]

MEANINGS = {
    "cancelled": "it will not run",
    "too_late": "it is published already; no further attempt is filed",
    "unknown": "there is no such task",
    "not_dead": "it is not dead",
    "id_conflict": "the id is taken by another task",
    "duplicate": "the same was accepted before",
    "kept": "the earlier one stays",
}
CODES = {
    "unknown": ExitCode.NOT_FOUND,
    "too_late": ExitCode.FAILED,
    "not_dead": ExitCode.FAILED,
    "id_conflict": ExitCode.REFUSED,
}


async def cancel(call: Call, key: Key, tenant: Tenant = None, within: Within = "10s") -> int:
    """Do not run a task. The answer is true: cancelled, too late, or unknown."""
    from ..wiring import opened

    within_ms = length_ms(within)
    async with opened(call.settings, create=False) as installation:
        of, task_id = tenant_and_id(installation.limits, key, tenant)
        return tell(await installation.client().cancel(task_id, tenant=of, within_ms=within_ms), call.output)


async def reschedule(
    call: Call, key: Key, tenant: Tenant = None, in_: In = None, at: At = None, within: Within = "10s"
) -> int:
    """Run a task at another time. The answer is true: rescheduled, too late, or unknown."""
    from ..wiring import opened

    if (in_ is None) == (at is None):
        raise Failure("one of --in and --at says when", ExitCode.USAGE)
    within_ms, delay = length_ms(within), length(in_)
    async with opened(call.settings, create=False) as installation:
        of, task_id = tenant_and_id(installation.limits, key, tenant)
        receipt = await installation.client().reschedule(task_id, at=at, delay=delay, tenant=of, within_ms=within_ms)
        return tell(receipt, call.output)


async def get(
    call: Call,
    key: Key,
    tenant: Tenant = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until it is done, dead, cancelled or expired.")] = False,
    within: Annotated[str | None, typer.Option(metavar="LENGTH", help="With --wait: no longer than this.")] = None,
) -> int:
    """Show a task: its state, where it is, and why it has not run yet."""
    from ..wiring import opened
    from .patience import patiently

    within_ms = None if within is None else length_ms(within)
    async with opened(call.settings, create=False) as installation:
        of, task_id = tenant_and_id(installation.limits, key, tenant)
        client = installation.client()
        if wait:
            view: TaskView | None = await client.wait(task_id, tenant=of, within_ms=within_ms)
        else:
            view = await patiently(lambda: client.get(task_id, tenant=of))
    if view is None:
        raise Failure(f"there is no task {of}/{task_id}, or it is not applied yet", ExitCode.NOT_FOUND)
    show(view, call.output)
    return ExitCode.OK


def show(view: "TaskView", output: "Output") -> None:
    import msgspec

    if output.json:
        document: dict[str, Any] = msgspec.to_builtins(view)
        output.document({**document, "filing": str(view.filing), "due": moment(view.due_ms)})
        return
    output.fields(
        [
            ("key", view.key),
            ("state", view.state),
            ("why", view.why),
            ("queue", view.queue),
            ("due", moment(view.due_ms)),
            ("attempt", view.attempt),
            ("started", view.starts or ""),
            ("worker", view.worker),
            ("filed in", f"minute {minute_text(view.minute)} ({view.minute}), shard {view.shard}"),
            ("filing", view.filing),
            ("updated", moment(view.updated_ms)),
            ("history", view.note),
        ]
    )


def tell(receipt: "Receipt", output: "Output") -> int:
    """What was decided on a command, and the exit code that goes with it."""
    answer = str(receipt.answer)
    if output.json:
        document: dict[str, object] = {"key": receipt.key, "answer": answer, "state": receipt.state}
        if receipt.due_ms >= 0:
            document |= {"due_ms": receipt.due_ms, "due": moment(receipt.due_ms)}
        output.document(document)
    else:
        meaning = MEANINGS.get(answer)
        due = f", due {moment(receipt.due_ms)}" if answer in {"accepted", "replaced", "rescheduled", "redriven"} else ""
        output.line(f"{receipt.key}: {answer.replace('_', ' ')}{f' ({meaning})' if meaning else ''}{due}")
    return CODES.get(answer, ExitCode.OK)
