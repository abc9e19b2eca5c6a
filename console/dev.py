"""How does all of Minutewheel run in one process? The dispatcher of a data folder, and workers beside it if asked.

It prints one line when it holds all its shards, and serves until a signal; then it drains. Where a person watches, a
line at the bottom says what is going on. Once an hour it deletes what is past its retention.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from .command import Call
from .exits import Failure
from .output import Output

if TYPE_CHECKING:
    from ..dispatcher.dispatcher import Dispatcher
    from ..wiring import Installation
    from ..worker import App, Worker

LOOK_S = 0.05
STATUS_S = 0.5
FORGET_S = 3_600.0

log = structlog.get_logger("minutewheel.console")


async def dev(
    call: Call,
    app: Annotated[list[str] | None, typer.Option(metavar="MODULE:APP", help="Run its workers, too.")] = None,
    declare_queues: Annotated[bool | None, typer.Option(help="Declare the queues that tasks name.")] = None,
) -> None:
    """Run everything in one process: a dispatcher and, with --app, workers.

    SIGTERM and Ctrl-C drain it: running handlers end, the rest waits for the next start.
    """
    from ..wiring import opened
    from . import logs
    from .apps import load_app
    from .serving import serve, until_signal

    settings = call.settings
    if declare_queues is not None:
        settings = settings.model_copy(update={"declare_queues": declare_queues})
    logs.set_up(settings.log.level, settings.log.format, call.output.err)
    apps = [load_app(spec) for spec in app or ()]
    async with until_signal() as stop, opened(settings) as installation:
        await declare_queues_of(installation, apps)
        workers = [installation.worker(each) for each in apps]
        dispatcher = installation.dispatcher()
        async with beside(installation, dispatcher, workers, call.output):
            await serve([*workers, dispatcher], stop)


async def declare_queues_of(installation: "Installation", apps: Sequence["App"]) -> None:
    """Workers need the topics of their queues: make them, or say which are not declared."""
    queues = {queue for app in apps for queue in app.queues}
    if installation.settings.declare_queues:
        await installation.declare(queues)
        return
    missing = sorted(queues - {queue.name for queue in await installation.store.queues()})
    if missing:
        raise Failure(f"nobody has declared {', '.join(missing)}: `minutewheel queue put` does")


@asynccontextmanager
async def beside(
    installation: "Installation", dispatcher: "Dispatcher", workers: Sequence["Worker"], output: Output
) -> AsyncIterator[None]:
    """What runs beside the services, and ends with them."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_announce(installation, dispatcher, output)),
            group.create_task(_forget(installation)),
        ]
        if output.live:
            tasks.append(group.create_task(_show_status(dispatcher, workers, output)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _announce(installation: "Installation", dispatcher: "Dispatcher", output: Output) -> None:
    """One line when all shards are held: from now on what is due fires."""
    from ..store.task import SHARDS

    while sum(shard.claimed for shard in dispatcher.shards.values()) < SHARDS:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(LOOK_S)
    if output.json:
        output.document({"serving": True, "data": installation.place, "pid": os.getpid()})
    else:
        output.line(f"minutewheel serves {installation.place} (process {os.getpid()}); Ctrl-C ends it")
    output.out.flush()


async def _forget(installation: "Installation") -> None:
    while True:
        await asyncio.sleep(FORGET_S)
        try:
            await installation.forget()
        except Exception as error:  # noqa: BLE001 - it is tried again in an hour, and nothing depends on it
            log.warning("retention not kept", error=str(error))


async def _show_status(dispatcher: "Dispatcher", workers: Sequence["Worker"], output: Output) -> None:
    from rich.status import Status
    from rich.text import Text

    with Status(Text("taking the shards"), console=output.console(output.err)) as status:
        fired = 0
        while True:
            await asyncio.sleep(STATUS_S)
            before, fired = fired, sum(s.context.counts.fired for s in dispatcher.shards.values() if s.claimed)
            rate = max(0, fired - before) / STATUS_S
            status.update(Text(status_line(dispatcher, workers, fired, rate)))


def status_line(dispatcher: "Dispatcher", workers: Sequence["Worker"], fired: int, rate: float) -> str:
    """What is going on, in one line."""
    waiting = sum(len(s.context.memory.wheel) for s in dispatcher.shards.values() if s.claimed)
    parts = [f"{len(dispatcher.shards)} shards", f"{waiting:,} loaded", f"{fired:,} fired", f"{rate:,.0f}/s"]
    if workers:
        statistics = [worker.statistics() for worker in workers]
        parts += [f"{sum(s.done for s in statistics):,} done", f"{sum(s.in_hand for s in statistics):,} running"]
        if failed := sum(s.failed for s in statistics):
            parts.append(f"{failed:,} failed")
    return " · ".join(parts)
