"""How are a fleet's services set up, and how does one dispatcher of it run?"""

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from .command import Call
from .exits import ExitCode, Failure

if TYPE_CHECKING:
    from ..dispatcher.rejoining import Rejoining
    from ..wiring import Installation
    from .output import Output

LOOK_S = 0.1

log = structlog.get_logger("minutewheel.console")


async def dispatcher(call: Call) -> None:
    """Run one dispatcher of a fleet: it takes its share of the shards, and fires what is due in them.

    SIGTERM and Ctrl-C hand its shards over to the others.
    """
    from ..dispatcher.rejoining import Rejoining
    from ..wiring import opened
    from . import logs
    from .serving import serve, until_signal

    if call.settings.mode != "real":
        raise Failure("mode is embedded: `minutewheel dev` runs a dispatcher there", ExitCode.USAGE)
    logs.set_up(call.settings.log.level, call.settings.log.format, call.output.err)
    async with until_signal() as stop, opened(call.settings) as installation:
        rejoining = Rejoining(installation.dispatcher)
        async with asyncio.TaskGroup() as group:
            announcing = group.create_task(_announce(installation, rejoining, call.output))
            await serve([rejoining], stop)
            announcing.cancel()


async def _announce(installation: "Installation", rejoining: "Rejoining", output: "Output") -> None:
    """One line when it has joined the fleet: from now on it takes shards as the balance says."""
    while rejoining.dispatcher is None or not rejoining.dispatcher.joined:  # noqa: ASYNC110 - no event says so
        await asyncio.sleep(LOOK_S)
    member = rejoining.dispatcher.member
    if output.json:
        output.document({"serving": True, "fleet": installation.place, "member": member, "pid": os.getpid()})
    else:
        output.line(f"minutewheel serves {installation.place} as {member}; Ctrl-C ends it")
    output.out.flush()


async def setup(
    call: Call,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; say what is missing or wrong.")] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Let shards go on whose logs were made anew or have lost records.")
    ] = False,
) -> int:
    """Make the topics and tables of a fleet, and let each shard begin at the present minute. Repeatable.

    It adds what is missing and changes nothing that is there. The exit code is 1 if something is wrong.
    """
    from ..wiring import faults, opened, set_up
    from . import restart

    if call.settings.mode != "real":
        if not check:
            async with opened(call.settings):
                return ExitCode.OK
        raise Failure("mode is embedded: there is nothing to check", ExitCode.USAGE)
    if check and accept_loss:
        raise Failure("--check and --accept-loss exclude each other", ExitCode.USAGE)
    if not check:
        await set_up(call.settings)
    if accept_loss:
        async with opened(call.settings) as installation:
            call.output.note(f"{await restart.accept_loss(installation)} shards go on at their logs' starts")
    found = await faults(call.settings)
    show_faults(found, call.output)
    return ExitCode.FAILED if found else ExitCode.OK


def show_faults(found: list[str], output: "Output") -> None:
    if output.json:
        output.document({"faults": found})
        return
    for fault in found:
        output.line(fault)
    if not found:
        output.note("the fleet is set up")
