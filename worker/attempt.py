"""How does one start of a handler go, and what does its end mean?

Here a delivered record becomes a call of a handler, and whatever the handler returns or raises becomes an `Ending`.
No ledger and no broker: the same for a worker process and for a test client.
"""

import asyncio
import logging
from typing import Any, Literal

from msgspec import Struct

from ..broker.due import Delivered
from .app import TASK_HEADER, App, Handler
from .context import AsyncContext, Context, Once
from .errors import Reject, Retry, Snooze
from .span import Cut, Span
from .threads import Threads

REASON_LIMIT = 1_000
WORKER_LOST = "worker lost"
_log = logging.getLogger("minutewheel.worker")


class Ending(Struct, frozen=True):
    """How an attempt ended; `delay_ms` is what the handler asked for, None for the retry policy's own delay."""

    kind: Literal["done", "failed", "snoozed", "expired"]
    reason: str = ""
    retryable: bool = True
    delay_ms: int | None = None


DONE = Ending("done")


def before_start(delivered: Delivered, starts: int, now_ms: int) -> Ending | None:
    """The ending of a task that may not be started (again); `starts` is the number that this start would get."""
    if 0 < delivered.expires_ms < now_ms:
        return Ending("expired", "not started by its start deadline", retryable=False)
    if starts > delivered.task.max_attempts:
        return Ending("failed", WORKER_LOST, retryable=False)
    return None


def prepare(app: App, delivered: Delivered) -> tuple[Handler[Any], Any] | Ending:
    """The handler and its first argument, or why there is none: that will be so the next time, too."""
    headers = dict(delivered.headers)
    try:
        handler = app.handler(delivered.queue, _text(headers.get(TASK_HEADER)))
    except LookupError as error:
        return Ending("failed", str(error), retryable=False)
    try:
        return handler, handler.decode(delivered.payload, _text(headers.get("content-type")) or "")
    except ValueError as error:
        return Ending("failed", f"payload: {reason_of(error)}", retryable=False)


def timeout_of(handler: Handler[Any], delivered: Delivered) -> int:
    """In ms; the task's own, else the handler's; 0 is none."""
    return delivered.task.timeout_ms or handler.timeout_ms


async def perform(
    handler: Handler[Any],
    payload: Any,
    context: AsyncContext | Context,
    span: Span,
    threads: Threads,
) -> Ending | Cut:
    """Start the handler and see it to its end. A plain handler's place among the threads is taken already."""
    arguments = (payload, context) if handler.takes_context else (payload,)
    try:
        async with span:
            if handler.waits:
                await handler.function(*arguments)  # type: ignore[misc]  # it waits: it gives an awaitable
            else:
                await threads.run(lambda: handler.function(*arguments))
    except KeyboardInterrupt:
        raise
    except asyncio.CancelledError as error:
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise
        return ending_of(error)
    except BaseException as error:  # noqa: BLE001  # a handler that calls sys.exit() failed, no more
        return ending_of(error)
    if span.cut is Cut.TIMEOUT:
        return Ending("failed", f"timeout: not done within {span.timeout_ms} ms")
    return span.cut or DONE


def make_context(
    handler: Handler[Any], *, delivered: Delivered, starts: int, now_ms: int, span: Span, once: Once
) -> AsyncContext | Context:
    timeout_ms = timeout_of(handler, delivered)
    make = AsyncContext if handler.waits else Context
    return make(delivered, starts, now_ms + timeout_ms if timeout_ms else None, span, once)


def ending_of(error: BaseException) -> Ending:
    """What an exception from a handler says."""
    if isinstance(error, Retry):
        return Ending("failed", reason_of(error), delay_ms=error.after_ms)
    if isinstance(error, Snooze):
        return Ending("snoozed", reason_of(error), delay_ms=error.after_ms)
    if isinstance(error, Reject):
        return Ending("failed", reason_of(error), retryable=False)
    _log.info("a handler failed", exc_info=error)
    return Ending("failed", reason_of(error))


def reason_of(error: BaseException) -> str:
    """One bounded line that any encoder takes, whatever the exception is made of."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # an exception's own text may fail
        text = ""
    if not isinstance(error, Retry | Snooze | Reject):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text.encode(errors="replace").decode()[:REASON_LIMIT]


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode(errors="replace")
