"""What does the worker of a run do? It writes down that it was asked to: one line for each start of its handler.

An application as anyone would write one, for `minutewheel worker`. Each process has a record of its own, a file that is
only appended to, in single writes, so that what is in it was done, whatever became of the process. The product is asked
for nothing but the task's key and idempotency key, and which attempt it is. As many attempts fail as the payload says.
"""

import os
import time
from functools import cache
from pathlib import Path

from ..worker import App, AsyncContext
from .evaluation import Start

QUEUE = "loadtest"
RECORD = "LOADTEST_RECORD"
"""The environment variable that names the record's file."""

app = App("loadtest")


class FailsOnPurpose(Exception):
    """The plan of the load says so."""


@app.task(queue=QUEUE)
async def work(payload: bytes, context: AsyncContext) -> None:
    at_ms = time.time_ns() // 1_000_000
    line = f"{context.key}\t{context.idempotency_key}\t{context.attempt}\t{at_ms}\n"
    os.write(_record(), line.encode())
    if context.attempt <= failures_of(payload):
        raise FailsOnPurpose


def payload_of(failures: int, payload_bytes: int) -> bytes:
    """So large (but at least a number and a space), and it says how many attempts fail."""
    return (b"%d " % failures).ljust(payload_bytes, b"x")


def failures_of(payload: bytes) -> int:
    return int(payload.partition(b" ")[0] or b"0")


@cache
def _record() -> int:
    return os.open(os.environ[RECORD], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class Record:
    """A process's record, read as it grows."""

    def __init__(self, path: Path, process: str) -> None:
        self.path = path
        self._process = process
        self._read = 0

    def news(self) -> list[Start]:
        """What has come since this was asked last. A line that is not whole yet comes the next time."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._read)
            text, end, _ = file.read().rpartition(b"\n")
        self._read += len(text) + len(end)
        parts = (line.split("\t") for line in text.decode().splitlines())
        return [
            Start(key, idempotency_key, int(at_ms), self._process, int(attempt))
            for key, idempotency_key, attempt, at_ms in parts
        ]
