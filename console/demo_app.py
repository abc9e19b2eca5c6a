"""What does the demo's worker do? It writes down that it was asked to: one line for each start of its handler.

An application as anyone would write one, for `minutewheel worker`. Its record is a file that is only appended to, in
single writes, so that what is in it was done, whatever became of the worker.
"""

import os
import time
from functools import cache

from ..worker import App, AsyncContext

QUEUE = "demo"
RECORD = "DEMO_RECORD"
"""The environment variable that names the record's file."""

app = App("demo")


@app.task(queue=QUEUE)
async def work(_number: int, context: AsyncContext) -> None:
    line = f"{context.key}\t{context.idempotency_key}\t{time.time_ns() // 1_000_000}\n"
    os.write(_record(), line.encode())


@cache
def _record() -> int:
    return os.open(os.environ[RECORD], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
