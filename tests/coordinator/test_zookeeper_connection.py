import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest
from minutewheel.coordinator import CoordinatorUnavailable, LeaseLost
from minutewheel.coordinator.zookeeper_connection import IN_FLIGHT_MAX, Connection, Remarks
from minutewheel.coordinator.zookeeper_security import Security
from minutewheel.deploy.services import Server


@pytest.mark.pure
def test_what_may_hold_a_password_is_not_passed_on_and_the_last_warning_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(1)
    remarks = Remarks(logging.getLogger("minutewheel.coordinator"))
    remarks.debug("Sending request %s", "ada:hush-hush")
    remarks.log(5, "hush-hush")
    remarks.info("Connecting to %s", "db-7")
    remarks.warning("Connection dropped: %s", "no route")
    remarks.info("Connecting to %s", "db-8")
    assert "hush" not in caplog.text
    assert "db-7" in caplog.text
    assert remarks.last == "Connection dropped: no route"


async def test_where_nobody_listens_it_says_so_within_the_session_timeout() -> None:
    with socket.socket() as bound:  # bound, and not listening: everyone is refused
        bound.bind(("127.0.0.1", 0))
        hosts = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(CoordinatorUnavailable, match=rf"{hosts}.*Connection refused"):
            await Connection.open(hosts, 500, Security())


@pytest.mark.real
@pytest.mark.parametrize(("asked_ms", "granted_ms"), [(100, 1_000), (7_000, 7_000), (900_000, 60_000)])
async def test_the_timeout_is_the_one_that_was_granted(
    reach: Callable[..., Any], asked_ms: int, granted_ms: int
) -> None:
    membership = await reach(session_timeout_ms=asked_ms).join()
    assert membership.session_timeout_ms == granted_ms


@pytest.mark.real
async def test_many_requests_at_once_are_all_answered_in_order(zookeeper: Server) -> None:
    """More than may be on their way at a time; and no matter that nobody waits for some of them."""
    connection = await Connection.open(zookeeper.address, 3_000, Security())
    abandoned = asyncio.create_task(connection.ask(*[lambda client: client.exists_async("/")] * 50))
    await asyncio.sleep(0)
    abandoned.cancel()
    asked = [
        lambda client, n=n: client.exists_async(f"/{'zookeeper' if n % 2 else 'x'}") for n in range(5 * IN_FLIGHT_MAX)
    ]
    answers = await connection.ask(*asked)
    assert [answer is not None for answer in answers] == [bool(n % 2) for n in range(5 * IN_FLIGHT_MAX)]
    connection.end("the test is over")
    assert await connection.closed(10_000)


@pytest.mark.real
async def test_the_end_answers_those_who_wait_and_all_who_come_later(zookeeper: Server) -> None:
    connection = await Connection.open(zookeeper.address, 3_000, Security())
    zookeeper.stop()
    waiting = [asyncio.create_task(connection.ask(lambda client: client.exists_async("/"))) for _ in range(3)]
    await asyncio.sleep(0)
    connection.end("first")
    connection.end("second")
    for one in waiting:
        with pytest.raises(LeaseLost, match="first"):
            await one
    with pytest.raises(LeaseLost, match="first"):
        await connection.ask(lambda client: client.exists_async("/"))
    zookeeper.cont()
    await connection.closed(30_000)


@pytest.mark.real
async def test_a_break_is_counted_in_the_thread_that_sees_it(zookeeper: Server, wire: Any) -> None:
    """The loop is busy with something else all the while."""
    connection = await Connection.open(wire.address, 3_000, Security())
    assert connection.breaks == 0
    connection._client._connection._socket.shutdown(socket.SHUT_RDWR)
    while connection.breaks == 0:
        pass
    assert connection.breaks == 1
    assert await connection.ask(lambda client: client.exists_async("/zookeeper")) != [None]
    connection.end("the test is over")
    assert await connection.closed(10_000)
