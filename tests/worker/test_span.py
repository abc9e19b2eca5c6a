import asyncio
from contextlib import suppress

import pytest
from minutewheel.worker.span import Cut, Span


async def test_what_comes_to_its_end_is_not_cut() -> None:
    span = Span(10_000)
    async with span:
        await asyncio.sleep(0)
    assert span.cut is span.ending is None
    span.cut_short(Cut.STOPPING)
    assert span.cut is None


async def test_a_timeout_cuts_it() -> None:
    span = Span(1)
    async with span:
        await asyncio.Event().wait()
    assert span.cut is Cut.TIMEOUT


@pytest.mark.parametrize("reason", [Cut.HOLD_LOST, Cut.STOPPING])
async def test_the_first_reason_stands(reason: Cut) -> None:
    span = Span(0)
    async with span:
        span.cut_short(reason)
        span.cut_short(Cut.TIMEOUT)
        await asyncio.Event().wait()
    assert span.cut is span.ending is reason


async def test_an_error_on_the_way_out_of_a_cut_is_the_cuts() -> None:
    span = Span(0)
    async with span:
        span.cut_short(Cut.STOPPING)
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while cleaning up")
    assert span.cut is Cut.STOPPING


async def test_what_ends_well_though_it_was_cut_has_ended_well() -> None:
    span = Span(0)
    async with span:
        span.cut_short(Cut.STOPPING)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    assert span.cut is None


async def test_an_error_without_a_cut_passes() -> None:
    span = Span(0)
    with pytest.raises(ValueError, match="broken"):
        async with span:
            raise ValueError("broken")
    assert span.cut is None


async def test_a_cancellation_from_outside_passes() -> None:
    span, entered = Span(10_000), asyncio.Event()

    async def work() -> None:
        async with span:
            entered.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await entered.wait()
        task.cancel()
    assert task.cancelled()
    assert span.cut is None


async def test_an_extended_span_lasts_longer() -> None:
    loop = asyncio.get_running_loop()
    span = Span(40)
    started = loop.time()
    async with span:
        while loop.time() < started + 0.08:
            span.extend()
            await asyncio.sleep(0)
    assert span.cut is None
