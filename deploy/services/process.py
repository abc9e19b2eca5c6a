"""Is the process with this id still the one that was started, and how is it signalled without hitting another?

A process id alone is a name that the system gives away again. Together with the moment of the process's start
(`/proc/<pid>/stat`, in clock ticks since boot) it names one process for good. A signal goes through a file descriptor
of the process (`pidfd`), which is opened first and compared after: between the two, no other process can take the id.

A server is started through a shell that ends at once, so it is nobody's child here: it outlives this process, needs no
waiting for, and a terminal's Ctrl-C does not reach it.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from .errors import ServiceError

POLL_S = 0.002
SLEEP_SLACK_NS = 2_000_000
"""By how much the kernel may let a server's sleeps last longer. Idle workers of Cassandra sleep for 10 µs at a time to
look for work, which a few cores feel: in Linux, each such sleep costs more than the look."""
DETACHED = f"""(
    {{ echo {SLEEP_SLACK_NS} >/proc/self/timerslack_ns; }} 2>/dev/null
    exec "$@" </dev/null >>"$SERVER_LOG" 2>&1
) & echo $!"""
STATE, START_TICKS = 0, 19
"""Places in `/proc/<pid>/stat`, counted after the program's name, which may hold spaces and brackets itself."""


class Process(Struct, frozen=True):
    """One process: its id, and when it started in ticks since boot."""

    pid: int
    start_ticks: int

    @classmethod
    def spawn(cls, command: Sequence[str], log: Path, folder: Path) -> "Process":
        """Start `command` in `folder`, detached; both its outputs are appended to `log`."""
        done = subprocess.run(  # noqa: S603 - the command is the launcher's own
            ["/bin/sh", "-c", DETACHED, "sh", *command],
            cwd=folder,
            env={**os.environ, "SERVER_LOG": str(log)},
            start_new_session=True,
            check=True,
            stdout=subprocess.PIPE,
        )
        pid = int(done.stdout)
        if (found := _stat(pid)) is None:
            raise ServiceError(f"{command[0]} ended at once; see {log}")
        return cls(pid, int(found[START_TICKS]))

    @property
    def alive(self) -> bool:
        """Whether it still is there. A zombie, which its parent only has not asked after, is not."""
        found = _stat(self.pid)
        return found is not None and int(found[START_TICKS]) == self.start_ticks and found[STATE] not in "ZX"

    @property
    def stopped(self) -> bool:
        """Whether SIGSTOP holds it."""
        found = _stat(self.pid)
        return self.alive and found is not None and found[STATE] == "T"

    def send(self, what: signal.Signals) -> bool:
        """Signal it. False, and no harm done, when it is gone, even if another process has its id now."""
        descriptor = self._open()
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, what)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def wait_gone(self, timeout_s: float) -> bool:
        """Wait for its end. False when it still is there after `timeout_s`."""
        descriptor = self._open()
        if descriptor is None:
            return True
        try:
            readable, _, _ = select.select([descriptor], [], [], timeout_s)
        finally:
            os.close(descriptor)
        return bool(readable)

    def wait_stopped(self, timeout_s: float) -> bool:
        """Wait until SIGSTOP holds it: the signal has been sent before the process stands still."""
        deadline = time.monotonic() + timeout_s
        while not self.stopped and self.alive and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return self.stopped

    def _open(self) -> int | None:
        descriptor = None
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(self.pid)
        if descriptor is not None and not self.alive:
            os.close(descriptor)
            return None
        return descriptor


def _stat(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
