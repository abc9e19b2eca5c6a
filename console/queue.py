"""How are queues declared, so that submissions may name them?"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .command import Call
from .exits import ExitCode, Failure

if TYPE_CHECKING:
    from ..store.port import Queue
    from ..wiring import Installation
    from .output import Output


async def put(
    call: Call,
    name: Annotated[str, typer.Argument(help="1 to 64 of A-Z a-z 0-9 . _ -")],
    outcomes: Annotated[
        Literal["expected", "none"], typer.Option(help="none: its tasks are settled when they are published.")
    ] = "expected",
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> int:
    """Declare a queue, or change it; its topic is made."""
    from ..store.port import Queue
    from ..wiring import opened

    async with opened(call.settings) as installation:
        await put_queue(installation, Queue(name, outcomes, note))
    if call.output.json:
        call.output.document(Queue(name, outcomes, note))
    return ExitCode.OK


async def list_(call: Call) -> int:
    """List the declared queues."""
    from ..wiring import opened

    async with opened(call.settings, create=False) as installation:
        await list_queues(installation, call.output)
    return ExitCode.OK


async def put_queue(installation: "Installation", queue: "Queue") -> None:
    from ..settings import QUEUE

    if QUEUE.fullmatch(queue.name) is None:
        raise Failure("a queue is 1 to 64 of A-Z a-z 0-9 . _ -", ExitCode.REFUSED)
    await installation.client().put_queue(queue)


async def list_queues(installation: "Installation", output: "Output") -> None:
    from .patience import patiently

    queues = await patiently(installation.store.queues)
    if output.json:
        for queue in queues:
            output.document(queue)
    else:
        output.table(("queue", "outcomes", "note"), ((queue.name, queue.outcomes, queue.note) for queue in queues))
