from typing import Any

import pytest
from minutewheel import HoldLost, TimeoutPassed
from minutewheel.broker.due import parse_due
from minutewheel.broker.wire import Record
from minutewheel.store.record import Options
from minutewheel.worker import AsyncContext
from minutewheel.worker.span import Cut, Span


async def never(_: str) -> bool:
    return False


def context_of(stand: Any, span: Span) -> AsyncContext:
    message = stand.due(
        "acme/a/b", options=Options(max_attempts=7), headers=(("trace", b"x"),), attempt=2, filing=1 << 15
    )
    delivered = parse_due(Record(message.topic, 0, 0, 0, message.key, message.value, message.headers))
    return AsyncContext(delivered, 3, None, span, never)


async def test_a_handler_learns_what_it_runs(stand: Any) -> None:
    ctx = context_of(stand, Span(0))
    assert (ctx.key, ctx.tenant, ctx.id, ctx.queue) == ("acme/a/b", "acme", "a/b", "mail")
    assert (ctx.attempt, ctx.starts, ctx.max_attempts, ctx.deadline_ms) == (2, 3, 7, None)
    assert ctx.idempotency_key == f"acme/a/b:{1 << 15}"
    assert ctx.headers == {"trace": b"x"}
    assert not await ctx.once("anything")


async def test_a_heartbeat_says_why_to_stop(stand: Any) -> None:
    for reason, error in ((Cut.HOLD_LOST, HoldLost), (Cut.STOPPING, HoldLost)):
        span = Span(0)
        async with span:
            ctx = context_of(stand, span)
            ctx.heartbeat()
            span.cut_short(reason)
            with pytest.raises(error):
                ctx.heartbeat()
    span = Span(1)
    async with span:
        import asyncio

        await asyncio.Event().wait()
    with pytest.raises(TimeoutPassed):
        context_of(stand, span).heartbeat()


async def test_the_log_says_which_attempt_it_is(stand: Any) -> None:
    from structlog.testing import capture_logs

    with capture_logs() as logs:
        context_of(stand, Span(0)).log.info("sent")
    assert logs == [
        {"event": "sent", "key": "acme/a/b", "queue": "mail", "attempt": 2, "starts": 3, "log_level": "info"}
    ]
