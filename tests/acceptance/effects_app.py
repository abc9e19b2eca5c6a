"""The application of the kill test: an effect is a row keyed by the idempotency key, in a file of its own."""

import os
import sqlite3
import time

from minutewheel import App, AsyncContext

app = App("effects")
file = sqlite3.connect(os.environ["EFFECTS"], isolation_level=None, timeout=30)
file.execute("PRAGMA journal_mode = WAL")
file.execute("PRAGMA synchronous = NORMAL")
file.execute("CREATE TABLE IF NOT EXISTS effect (idempotency_key TEXT PRIMARY KEY, key TEXT, due_ms INTEGER)")
file.execute("CREATE TABLE IF NOT EXISTS start (idempotency_key TEXT, key TEXT, at_ms INTEGER)")


@app.task(queue="effects", max_attempts=100)
async def work(_payload: int, context: AsyncContext) -> None:
    row = (context.idempotency_key, context.key)
    file.execute("INSERT INTO start VALUES (?, ?, ?)", (*row, time.time_ns() // 1_000_000))
    file.execute("INSERT OR IGNORE INTO effect VALUES (?, ?, ?)", (*row, context.due_ms))
