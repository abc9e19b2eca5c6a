"""What can be done to one server: start it again on its data, kill, stop and continue it, end it, wipe its data?

A `Server` is a name in a folder; what it is at the moment stands in the folder's state. So two processes may hold the
same server, and one sees what the other did.
"""

import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from . import cassandra, kafka, zookeeper
from .errors import ServiceError
from .process import Process
from .state import Placed, Product, read_state, turn, write_state

END_TIMEOUT_S = 30.0
POLL_S = 0.1
LINES_QUOTED = 20
LOG_START_BYTES = 1 << 26
"""What may stand in a log before the line that says that the server is ready: Kafka writes some for each partition."""
LOG_END_BYTES = 1 << 16


class Recipe(Protocol):
    """What the module of a product gives."""

    PORTS: dict[str, int]
    READY_TIMEOUT_S: float

    def command(self, placed: Placed, peers: Sequence[Placed], folder: Path) -> list[str]: ...
    def ready(self, placed: Placed, peers: Sequence[Placed], log: str) -> bool: ...


RECIPES: dict[Product, Recipe] = {"cassandra": cassandra, "kafka": kafka, "zookeeper": zookeeper}


class Server:
    """One server of a folder that an `up` has placed there."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.home = folder / name
        self.log = folder / f"{name}.log"
        self.placed  # noqa: B018 - an unknown name is refused here

    @property
    def placed(self) -> Placed:
        known = read_state(self.folder).servers
        if self.name not in known:
            raise ServiceError(f"there is no server {self.name} in {self.folder}, but {', '.join(known) or 'none'}")
        return known[self.name]

    @property
    def address(self) -> str:
        return self.placed.address

    @property
    def running(self) -> bool:
        return self.placed.running

    @property
    def stopped(self) -> bool:
        return (process := self.placed.process) is not None and process.stopped

    @property
    def pid(self) -> int | None:
        """The id of its process, if that runs."""
        return self._process.pid if self.running else None

    def start(self, timeout_s: float | None = None) -> None:
        """Start it again on the same data and ports, and wait until it serves. Nothing to do if it runs."""
        with turn(self.folder):
            if not self.running:
                self.launch()
        self.wait_ready(timeout_s)

    def launch(self) -> None:
        """Start the process and note it, without waiting. Whoever calls has the folder's turn."""
        state = read_state(self.folder)
        placed = state.servers[self.name]
        command = RECIPES[placed.product].command(placed, state.of(placed.product), self.home)
        self.log.touch()
        log_start = self.log.stat().st_size
        process = Process.spawn(command, self.log, self.home)
        write_state(self.folder, state.put(replace(placed, process=process, log_start=log_start)))

    def wait_ready(self, timeout_s: float | None = None) -> None:
        """Wait until it serves; an error that quotes its log when it ends before, or does not in time."""
        recipe = RECIPES[self.placed.product]
        timeout_s = recipe.READY_TIMEOUT_S if timeout_s is None else timeout_s
        deadline = time.monotonic() + timeout_s
        while not self.ready():
            if not self.running:
                raise ServiceError(f"{self.name} has ended; {self.last_lines()}")
            if time.monotonic() > deadline:
                why = "is stopped (SIGSTOP)" if self.stopped else "does not serve"
                raise ServiceError(f"{self.name} {why} after {timeout_s:.0f} s; {self.last_lines()}")
            time.sleep(POLL_S)

    def ready(self) -> bool:
        """Whether it serves now."""
        state = read_state(self.folder)
        placed = state.servers[self.name]
        if not placed.running or self.stopped:
            return False
        beginning = self._log_text(placed.log_start, LOG_START_BYTES)
        return RECIPES[placed.product].ready(placed, state.of(placed.product), beginning)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self._process.wait_gone(END_TIMEOUT_S)

    def stop(self) -> None:
        """SIGSTOP: it stands still, with its connections open."""
        self._signal(signal.SIGSTOP)
        self._process.wait_stopped(END_TIMEOUT_S)

    def cont(self) -> None:
        """SIGCONT: it goes on."""
        self._signal(signal.SIGCONT)

    def end(self, timeout_s: float = END_TIMEOUT_S) -> None:
        """SIGTERM, and SIGKILL if it is not gone in time. Nothing to do if it does not run."""
        if not self.running:
            return
        process = self._process
        process.send(signal.SIGTERM)
        process.send(signal.SIGCONT)
        if not process.wait_gone(timeout_s):
            process.send(signal.SIGKILL)
            process.wait_gone(timeout_s)

    def wipe(self) -> None:
        """Remove all its data, as a lost disk does. Only while it does not run."""
        with turn(self.folder):
            if self.running:
                raise ServiceError(f"{self.name} runs: kill or end it first")
            if self.home.exists():
                shutil.rmtree(self.home)

    def last_lines(self) -> str:
        """The end of the present run's log, after a line that says where it is."""
        size = self.log.stat().st_size if self.log.exists() else 0
        end = self._log_text(max(self.placed.log_start, size - LOG_END_BYTES), LOG_END_BYTES)
        return "\n".join([f"the end of {self.log}:", *(end.splitlines()[-LINES_QUOTED:] or ["(nothing)"])])

    def _log_text(self, start: int, count: int) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(start)
            return file.read(count).decode(errors="replace")

    @property
    def _process(self) -> Process:
        process = self.placed.process
        if process is None:
            raise ServiceError(f"{self.name} has never run")
        return process

    def _signal(self, what: signal.Signals) -> None:
        if not self._process.send(what):
            raise ServiceError(f"{self.name} does not run")
