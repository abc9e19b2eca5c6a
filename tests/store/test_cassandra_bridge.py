"""Does the bridge bound what is in flight, and tell what became of a request?"""

import asyncio
import logging
from typing import Any

import pytest
from minutewheel.store.cassandra_bridge import AT_ONCE, Access, CassandraConnection, all_of, in_one_line
from minutewheel.store.errors import NotApplied, StoreError, UnknownOutcome


async def test_all_of_answers_in_order_and_works_on_some_at_once() -> None:
    begun: list[int] = []
    full = asyncio.Event()

    async def work(item: int) -> int:
        begun.append(item)
        if len(begun) == AT_ONCE:
            full.set()
        await full.wait()
        return item * 2

    assert await all_of(work, range(3 * AT_ONCE)) == [2 * n for n in range(3 * AT_ONCE)]
    assert await all_of(work, []) == []
    assert await all_of(work, [5]) == [10]


@pytest.mark.parametrize(
    ("failing", "error", "kind"),
    [
        (range(99), NotApplied("no"), NotApplied),
        ([50], NotApplied("no"), UnknownOutcome),
        ([50], UnknownOutcome("?"), UnknownOutcome),
    ],
)
async def test_the_first_failure_starts_no_more(failing: Any, error: StoreError, kind: type[StoreError]) -> None:
    begun: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        await asyncio.sleep(0)
        if item in failing:
            raise error

    with pytest.raises(StoreError) as raised:
        await all_of(work, range(99))
    assert type(raised.value) is kind
    assert len(begun) < min(failing) + 2 * AT_ONCE


def test_no_secret_is_shown() -> None:
    assert "hunter2" not in repr(Access(("a",), username="mw", password="hunter2"))


async def test_where_nobody_listens_the_error_says_so(unused_tcp_port: int) -> None:
    with pytest.raises(StoreError, match=f"127.0.0.1:{unused_tcp_port}"):
        await CassandraConnection.open(Access(("127.0.0.1",), unused_tcp_port, connect_timeout_ms=500))


def test_what_the_driver_logs_is_one_line() -> None:
    error = OSError("refused")
    told = (OSError, error, error.__traceback__)
    record = logging.LogRecord("cassandra.cluster", logging.WARNING, "", 1, "no connection to %s", ("a",), told)
    assert in_one_line(record)
    assert logging.Formatter().format(record) == "no connection to a OSError('refused')"


@pytest.mark.real
async def test_connecting_warns_of_nothing(keyspace: Any, caplog: pytest.LogCaptureFixture) -> None:
    connection = await CassandraConnection.open(keyspace.access)
    await connection.close()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("cassandra")] == []


@pytest.mark.real
async def test_a_closed_connection_applies_nothing(keyspace: Any) -> None:
    connection = await CassandraConnection.open(keyspace.access)
    select = await connection.prepare("SELECT key FROM system.local")
    assert await connection.read(select.bind(())) == [("local",)]
    await connection.close()
    await connection.close()
    with pytest.raises(NotApplied):
        await connection.write(select.bind(()))


@pytest.mark.real
async def test_what_is_in_flight_is_bounded_and_a_cancelled_caller_keeps_no_place(wire: Any, keyspace: Any) -> None:
    access = Access(("127.0.0.1",), await wire.serve(), in_flight_max=2)
    connection = await CassandraConnection.open(access)
    select = await connection.prepare("SELECT key FROM system.local")
    wire.hold()
    asked = [asyncio.create_task(connection.read(select.bind(()))) for _ in range(5)]
    await wire.held.wait()
    assert connection._slots.locked()
    asked[0].cancel()
    wire.release()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [[("local",)]] * 4
    assert not connection._slots.locked()
    await connection.close()


@pytest.mark.real
async def test_a_refused_statement_is_not_applied(connection: CassandraConnection) -> None:
    with pytest.raises(NotApplied, match="InvalidRequest"):
        await connection.prepare("SELECT nothing FROM nowhere.at_all")


@pytest.mark.real
async def test_pages_are_followed_to_the_end(connection: CassandraConnection) -> None:
    select = await connection.prepare(
        "SELECT table_name, column_name FROM system_schema.columns WHERE keyspace_name = 'system'"
    )
    whole = await connection.read(select.bind(()))
    select.fetch_size = 3
    assert await connection.read(select.bind(())) == whole
    assert len(whole) > 100
