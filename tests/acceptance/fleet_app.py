"""The application of the fleet's fault test: an effect is a row keyed by the idempotency key, in a file of its own."""

import asyncio
import os
import sqlite3
import time

from minutewheel import App, AsyncContext

app = App("effects")
file = sqlite3.connect(os.environ["EFFECTS"], isolation_level=None, timeout=30)
file.execute("PRAGMA journal_mode = WAL")
file.execute("PRAGMA synchronous = NORMAL")
file.execute("CREATE TABLE IF NOT EXISTS effect (idempotency_key TEXT PRIMARY KEY, key TEXT, at_ms INTEGER)")
file.execute("CREATE TABLE IF NOT EXISTS start (idempotency_key TEXT, key TEXT, at_ms INTEGER, worker INTEGER)")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@app.task(queue="effects", max_attempts=100)
async def work(takes_ms: int, context: AsyncContext) -> None:
    row = (context.idempotency_key, context.key)
    file.execute("INSERT INTO start VALUES (?, ?, ?, ?)", (*row, now_ms(), os.getpid()))
    if takes_ms:
        await asyncio.sleep(takes_ms / 1_000)
    file.execute("INSERT OR IGNORE INTO effect VALUES (?, ?, ?)", (*row, now_ms()))
