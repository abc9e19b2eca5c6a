import asyncio
import os
import signal

import pytest
from minutewheel.console.exits import Failure
from minutewheel.console.serving import serve, serving, until_signal


class Lamp:
    """A service that burns until it is stopped, or until it is blown out."""

    def __init__(self, name: str, order: list[str]) -> None:
        self.name = name
        self.order = order
        self.over = asyncio.Event()
        self.error: Exception | None = None

    async def run(self) -> None:
        await self.over.wait()
        self.order.append(self.name)
        if self.error:
            raise self.error

    def stop(self) -> None:
        self.over.set()


async def test_services_end_in_their_order_when_the_block_does() -> None:
    order: list[str] = []
    async with serving([Lamp("worker", order), Lamp("dispatcher", order)]) as ended:
        assert not ended.is_set()
    assert order == ["worker", "dispatcher"]


async def test_a_stop_is_no_error_but_an_end_without_one_is() -> None:
    order: list[str] = []
    stop = asyncio.Event()
    stop.set()
    await serve([Lamp("one", order)], stop)
    lamps = [Lamp("one", order), Lamp("two", order)]
    lamps[1].stop()
    with pytest.raises(Failure):
        await serve(lamps, asyncio.Event())
    assert order[1:] == ["two", "one"]


async def test_an_error_of_one_ends_all() -> None:
    lamps = [Lamp("one", []), Lamp("two", [])]
    lamps[0].error = ValueError("broken")
    lamps[0].stop()
    with pytest.raises(ExceptionGroup) as raised:
        await serve(lamps, asyncio.Event())
    assert raised.group_contains(ValueError, match="broken")
    assert lamps[1].over.is_set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_sets_the_stop(number: signal.Signals) -> None:
    async with until_signal() as stop:
        os.kill(os.getpid(), number)
        async with asyncio.timeout(10):
            await stop.wait()
