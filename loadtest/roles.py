"""How does one role of a fleet run in a process of its own, so that its CPU time can be told apart?

A dispatcher or a worker as `wiring` makes it. The parent asks over a pipe, the child answers: how much CPU time it has
used, and how many tasks it has started. It ends when it is told to, or when the parent is gone.
"""

import asyncio
import logging
import multiprocessing
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, Literal, Protocol

import msgspec
import structlog
from msgspec import Struct

from ..settings import Settings
from ..wiring import opened
from ..worker import App
from .stage import QUEUE, LoadTestFailed

Name = Literal["dispatcher", "worker"]
START_S = 60.0
END_S = 60.0


class Used(Struct, frozen=True):
    """What a role has used and done."""

    cpu_s: float
    started: int


class Service(Protocol):
    """What serves until it is stopped."""

    async def run(self) -> None: ...
    def stop(self) -> None: ...


class Role:
    """A child process, as its parent sees it."""

    def __init__(self, process: Any, pipe: "Connection[Any, Any]") -> None:
        self._process = process
        self._pipe = pipe

    async def used(self) -> Used:
        return msgspec.convert(await asyncio.to_thread(self._ask, "used", START_S), Used)

    async def end(self) -> None:
        """Tell it to stop, and wait; it is ended by force if it does not."""
        await asyncio.to_thread(self._end)

    def _ask(self, what: str, patience_s: float) -> Any:
        try:
            self._pipe.send(what)
            if not self._pipe.poll(patience_s):
                raise LoadTestFailed(f"a process gave no answer within {patience_s:.0f} s")
            return self._pipe.recv()
        except (EOFError, OSError):
            raise LoadTestFailed("a process of the load test has ended by itself") from None

    def _end(self) -> None:
        with suppress(OSError):  # it may have ended by itself
            self._pipe.send("stop")
        self._process.join(END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


@asynccontextmanager
async def role(name: Name, settings: Settings) -> AsyncIterator[Role]:
    """A dispatcher or a worker, for the length of the block; it may still be joining when the block begins."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(name, settings, theirs), name=f"minutewheel-load-{name}", daemon=True)
    process.start()
    theirs.close()
    made = Role(process, ours)
    try:
        yield made
    finally:
        await made.end()


def serve(name: Name, settings: Settings, pipe: "Connection[Any, Any]") -> None:
    """The child: serve until told to stop. What goes wrong is printed to standard error."""
    import uvloop

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    uvloop.run(_serve(name, settings, pipe))


async def _serve(name: Name, settings: Settings, pipe: "Connection[Any, Any]") -> None:
    started = Started()
    async with opened(settings) as installation:
        service: Service = installation.dispatcher() if name == "dispatcher" else installation.worker(_app(started))
        loop = asyncio.get_running_loop()
        answering = threading.Thread(
            target=_answer, args=(pipe, started, lambda: loop.call_soon_threadsafe(service.stop)), daemon=True
        )
        answering.start()
        await service.run()


class Started:
    """How many handlers have started."""

    def __init__(self) -> None:
        self.count = 0


def _app(started: Started) -> App:
    """An application whose handler does nothing but count."""
    app = App("loadtest")

    @app.task(queue=QUEUE)
    async def work(_payload: bytes) -> None:
        started.count += 1

    return app


def _answer(pipe: "Connection[Any, Any]", started: Started, stop: Callable[[], object]) -> None:
    """In a thread of its own: answer the parent until it says stop, or is gone."""
    try:
        while pipe.recv() != "stop":
            pipe.send(msgspec.to_builtins(Used(time.process_time(), started.count)))
    except (EOFError, OSError):
        pass
    with suppress(RuntimeError):  # the loop has ended before
        stop()
