"""Which processes does a run start, how is each struck by a fault, and who sees to it that none is left?

Dispatchers and workers are started by the commands that anyone would use, each in a process group of its own, so that
Ctrl-C reaches the load test alone. Signals go to processes that were started here, by what was kept of them, and to no
others. A new one that takes the place of another has a name of its own: `worker 1`, then `worker 1 (2)`.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from .evaluation import Start, Strike
from .fault_plan import Fault, What
from .recording import RECORD, Record
from .report import Band

COMMAND = "from minutewheel.console.cli import main; main()"
APPLICATION = "minutewheel.loadtest.recording:app"
START_S = 60.0
END_S = 30.0
LOG_TAIL = 600


class RunFailed(Exception):
    """The run could not be brought to its begin, or to its end."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Child(Struct, kw_only=True, eq=False):
    """A process of ours. `expected` says that it was told to end, or killed."""

    name: str
    what: What
    process: asyncio.subprocess.Process
    log: Path
    record: Record
    expected: bool = False

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it may have ended by itself
            self.process.send_signal(number)


class Crew:
    """So many dispatchers and workers. `dispatch` is the command of a dispatcher, `options` are those of all, and
    `variables` are put into their environment."""

    def __init__(
        self, folder: Path, dispatch: Sequence[str], options: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        self.children: list[Child] = []
        self.starts: list[Start] = []
        self.bands: list[Band] = []
        self.strikes: list[Strike] = []
        self.remarks: list[str] = []
        self._folder = folder
        self._commands: dict[What, Sequence[str]] = {"dispatcher": dispatch, "worker": ("worker", APPLICATION)}
        self._options = options
        self._variables = variables
        self._posts: dict[str, Child] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._beginning: list[asyncio.Task[Child]] = []

    async def begin(self, dispatchers: int, workers: int) -> None:
        """Start them all. Each dispatcher serves, or has joined the fleet, when this returns. `RunFailed`."""
        numbers: dict[What, int] = {"dispatcher": dispatchers, "worker": workers}
        await asyncio.gather(*(self._start(what, which) for what in numbers for which in range(numbers[what])))

    async def _start(self, what: What, which: int) -> None:
        """Whoever is cancelled while a process begins must not lose sight of it: so that is done by itself."""
        beginning = asyncio.create_task(self._begin(what, f"{what} {which}"))
        self._beginning.append(beginning)
        child = await asyncio.shield(beginning)
        if child.process.stdout is not None:
            await self._serving(child, child.process.stdout)

    async def _begin(self, what: What, post: str) -> Child:
        before = sum(child.name.split(" (")[0] == post for child in self.children)
        name = f"{post} ({before + 1})" if before else post
        file = self._folder / name.replace(" ", "-")
        record, log = file.with_suffix(".tsv"), file.with_suffix(".log")
        with log.open("wb") as err:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", COMMAND, *self._commands[what], "--json", *self._options),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if what == "dispatcher" else asyncio.subprocess.DEVNULL,
                stderr=err,
                env={**os.environ, **self._variables, RECORD: str(record)},
                start_new_session=True,
            )
        child = Child(name=name, what=what, process=process, log=log, record=Record(record, name))
        self.children.append(child)
        self._posts[post] = child
        return child

    async def _serving(self, child: Child, out: asyncio.StreamReader) -> None:
        try:
            served = await asyncio.wait_for(out.readline(), START_S)
            how = None  # if there is no line, it has ended
        except TimeoutError:
            served, how = b"", signal.SIGTERM
        if not served:
            await self._end(child, how)
            raise RunFailed(f"{child.name} did not begin to serve: {_tail(child.log)}")

    def look(self) -> None:
        """Read what the workers wrote since, and notice who has ended by itself."""
        for child in self.children:
            if child.what == "worker":
                self.starts += child.record.news()
            if not child.alive and not child.expected:
                child.expected = True
                code = child.process.returncode
                self.remarks.append(f"{child.name} ended by itself with code {code}: {_tail(child.log)}")

    async def carry_out(self, plan: Sequence[Fault], start_ms: int) -> None:
        """Strike as planned; return when all is over."""
        async with asyncio.TaskGroup() as group:
            for fault in plan:
                group.create_task(self._carry_out(fault, start_ms))

    async def _carry_out(self, fault: Fault, start_ms: int) -> None:
        await asyncio.sleep(max(0, start_ms + fault.at_ms - now_ms()) / 1_000)
        async with self._turns.setdefault(fault.whom, asyncio.Lock()):  # its place may not be filled again yet
            child = self._posts[fault.whom]
            with self._noted(fault, child):
                if fault.do == "pause":
                    await self._pause(child, fault.for_ms)
                else:
                    await self._end(child, signal.SIGKILL if fault.do == "kill" else signal.SIGTERM)
                    await asyncio.sleep(fault.for_ms / 1_000)
                    await self._replace(fault)

    async def _replace(self, fault: Fault) -> None:
        """If nobody comes, the run goes on without: what that costs is what it is there to tell."""
        try:
            await self._start(fault.what, fault.which)
        except RunFailed as failed:
            self.remarks.append(str(failed))

    @contextmanager
    def _noted(self, fault: Fault, child: Child) -> Iterator[None]:
        """Note when it began and ended, however it ended."""
        from_ms = now_ms()
        try:
            yield
        finally:
            to_ms = now_ms()
            self.bands.append(Band(what=fault.do, whom=fault.whom, from_ms=from_ms, to_ms=to_ms))
            if fault.do != "stop":  # whoever is told to end brings to its end what it has begun
                self.strikes.append(Strike(child.name, from_ms, to_ms))

    @staticmethod
    async def _pause(child: Child, for_ms: int) -> None:
        child.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(for_ms / 1_000)
        finally:
            child.signal(signal.SIGCONT)

    async def _end(self, child: Child, how: signal.Signals | None) -> None:
        """Wait until it has ended, after a signal if it needs one."""
        child.expected = True
        try:
            if how is not None:
                child.signal(how)
            await asyncio.wait_for(child.process.wait(), END_S)
        except TimeoutError:
            self.remarks.append(f"{child.name} did not end within {END_S:.0f} s of being told to, and was killed")
            child.signal(signal.SIGKILL)
            await child.process.wait()

    async def end(self) -> None:
        """Tell all to end and wait; whoever does not is killed. What they wrote last is read."""
        self.look()
        await asyncio.gather(*(self._end(child, signal.SIGTERM) for child in self.children if child.alive))
        self.look()

    async def kill(self) -> None:
        """End all that are left, at once."""
        await asyncio.gather(*self._beginning, return_exceptions=True)
        left = [child for child in self.children if child.alive]
        for child in left:
            child.expected = True
            child.signal(signal.SIGKILL)
        await asyncio.gather(*(child.process.wait() for child in left))


@asynccontextmanager
async def crew(
    folder: Path, dispatch: Sequence[str], options: Sequence[str], variables: Mapping[str, str]
) -> AsyncIterator[Crew]:
    """One that has no process left after the block, whatever happens in it."""
    made = Crew(folder, dispatch, options, variables)
    try:
        yield made
    finally:
        await made.kill()


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-LOG_TAIL:].strip().replace("\n", " | ") or "it wrote nothing"
