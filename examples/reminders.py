"""A reminder service: ask for a reminder over the command line, get it when it is due.

minutewheel dev --app examples.reminders:app        # in one terminal
python examples/reminders.py "call Ada" 10          # in another: in ten seconds
"""

import asyncio
import sys
from datetime import timedelta

from minutewheel import App, AsyncContext, Reject
from minutewheel.settings import load
from minutewheel.wiring import opened
from msgspec import Struct

app = App("reminders")


class Reminder(Struct):
    text: str


@app.task(queue="reminders", max_attempts=3, timeout_ms=5_000)
async def remind(reminder: Reminder, context: AsyncContext) -> None:
    if not reminder.text:
        raise Reject("there is nothing to be reminded of")
    # What must not happen twice is recorded under `context.idempotency_key`, in the same transaction if there is one.
    print(f"{context.idempotency_key}: {reminder.text}", flush=True)


async def ask(text: str, seconds: float) -> str:
    """Submit a reminder, and return its key."""
    async with opened(load().settings) as installation:
        client = installation.client()
        accepted = await remind.schedule(client, Reminder(text), delay=timedelta(seconds=seconds))
        return accepted.key


if __name__ == "__main__":
    print(asyncio.run(ask(sys.argv[1], float(sys.argv[2]))))
