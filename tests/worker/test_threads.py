import asyncio
import contextvars
import threading

import pytest
from minutewheel.worker.threads import Threads


async def test_it_waits_for_what_the_function_does_and_raises_what_it_raises() -> None:
    threads = Threads(1)
    ran: list[str] = []
    await threads.wait_free()
    await threads.run(lambda: ran.append(threading.current_thread().name))
    assert ran == ["minutewheel-handler"]

    def fail() -> None:
        raise StopIteration("even this")

    await threads.wait_free()
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(fail)


async def test_no_more_run_at_a_time_than_there_are_places() -> None:
    threads = Threads(2)
    running = most = 0
    lock = threading.Lock()
    both = threading.Barrier(2)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(10)
        with lock:
            running -= 1

    async def one() -> None:
        await threads.wait_free()
        await threads.run(work)

    await asyncio.gather(*(one() for _ in range(6)))
    assert most == 2


async def test_an_abandoned_thread_keeps_its_place_until_it_returns() -> None:
    threads, release = Threads(1), threading.Event()
    await threads.wait_free()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await threads.run(release.wait)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await threads.wait_free()
    release.set()
    await threads.wait_free()


async def test_context_variables_go_along() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")
    seen: list[str] = []
    threads = Threads(1)
    await threads.wait_free()
    await threads.run(lambda: seen.append(variable.get()))
    assert seen == ["set"]
