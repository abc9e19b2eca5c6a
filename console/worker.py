"""How does a worker run in a process of its own, beside the `dev` of its data folder?"""

from typing import Annotated

import structlog
import typer

from .command import Call

log = structlog.get_logger("minutewheel.console")


async def worker(
    call: Call,
    app: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The application, as in `orders.tasks:app`.")],
) -> None:
    """Run an application's handlers on the tasks of its queues.

    SIGTERM and Ctrl-C stop it: running handlers end, what has not started is left to other workers.
    """
    from ..wiring import opened
    from . import logs
    from .apps import load_app
    from .dev import declare_queues_of
    from .serving import serve, until_signal

    logs.set_up(call.settings.log.level, call.settings.log.format, call.output.err)
    application = load_app(app)
    async with until_signal() as stop, opened(call.settings) as installation:
        await declare_queues_of(installation, [application])
        log.info("working", queues=application.queues, where=installation.place)
        await serve([installation.worker(application)], stop)
