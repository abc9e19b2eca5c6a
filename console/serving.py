"""How do a dispatcher and workers run together in one process, and how do they end?

They serve until one of SIGTERM and SIGINT comes (or `stop` is set), then drain: the workers bring what runs to its
end, the dispatcher hands its shards over. If one of them ends by itself, so do the others, and it is an error. A
second signal ends the process at once.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from .exits import Failure

SWITCH_S = 0.000_1
"""How long a thread that computes keeps the interpreter while another waits for it. By default 5 ms: so long the
threads that talk to SQLite, which let go of it at every row, would then wait each time."""


class Service(Protocol):
    """What serves until it is stopped: a dispatcher, a worker."""

    async def run(self) -> None: ...
    def stop(self) -> None: ...


async def serve(services: Sequence[Service], stop: asyncio.Event) -> None:
    """Run them until `stop`; `Failure` if one ends before."""
    async with serving(services) as ended:
        waits = [asyncio.create_task(stop.wait()), asyncio.create_task(ended.wait())]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    if not stop.is_set():
        raise Failure("the dispatcher has lost its data folder: is it there, and is nobody else using it?")


@asynccontextmanager
async def serving(services: Sequence[Service]) -> AsyncIterator[asyncio.Event]:
    """Run them while the block runs, then stop them in this order. The event says that one has ended by itself."""
    sys.setswitchinterval(SWITCH_S)
    ended = asyncio.Event()

    async def run(service: Service) -> None:
        try:
            await service.run()
        finally:
            ended.set()

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(run(service)) for service in services]
        try:
            yield ended
        finally:
            for service, task in zip(services, running, strict=True):
                service.stop()
                await asyncio.wait([task])


@asynccontextmanager
async def until_signal() -> AsyncIterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set; the second of them does what it does by default."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stopped() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, stopped)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
