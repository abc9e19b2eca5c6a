"""Does the bridge wake the loop once for many answers, bound what is in flight, and tell what became of a request?"""

import asyncio
import logging
import threading
from typing import Any

import pytest
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy
from minutewheel.store.cassandra_bridge import AT_ONCE, Access, CassandraConnection, Completions, all_of, in_one_line
from minutewheel.store.errors import NotApplied, StoreError, UnknownOutcome


async def test_many_answers_wake_the_loop_once() -> None:
    delivered: list[int] = []
    completions = Completions(asyncio.get_running_loop(), delivered.append)

    def answer() -> None:
        for n in range(1_000):
            completions.put(n)

    thread = threading.Thread(target=answer)
    thread.start()
    thread.join()  # the loop stands still meanwhile, as under load
    await asyncio.sleep(0)
    assert delivered == list(range(1_000))
    assert completions.wakes == 1
    completions.put(1_000)
    await asyncio.sleep(0)
    assert delivered[-1] == 1_000


async def test_answers_of_many_threads_all_arrive() -> None:
    enough = asyncio.Event()
    delivered: list[int] = []

    def deliver(answer: int) -> None:
        delivered.append(answer)
        if len(delivered) == 4_000:
            enough.set()

    completions = Completions(asyncio.get_running_loop(), deliver)
    threads = [
        threading.Thread(target=lambda start=start: [completions.put(start + n) for n in range(1_000)])
        for start in range(0, 4_000, 1_000)
    ]
    for thread in threads:
        thread.start()
    await enough.wait()
    assert sorted(delivered) == list(range(4_000))


async def test_an_answer_to_a_closed_loop_is_nobodys() -> None:
    loop = asyncio.new_event_loop()
    completions = Completions(loop, lambda _: None)
    loop.close()
    completions.put(1)
    assert completions.wakes == 0


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


class CrowdedSession:
    """The driver's, whose sockets' buffers are full at first."""

    def __init__(self, *, full_for: int, error: Exception) -> None:
        self.asked = 0
        self._full_for = full_for
        self._error = error
        self._paging_state = None

    def execute_async(self, statement: object, paging_state: object) -> "CrowdedSession":
        self.asked += 1
        return self

    def add_callbacks(self, callback: Any, errback: Any) -> None:
        if self.asked <= self._full_for:
            errback(self._error)
        else:
            callback([(True,)])


async def test_what_found_no_room_in_a_socket_is_offered_again() -> None:
    crowded = NoHostAvailable("none", {"a": ConnectionBusy("overloaded"), "b": ConnectionBusy("overloaded")})
    session = CrowdedSession(full_for=2, error=crowded)
    connection = CassandraConnection(None, session, in_flight_max=1)
    assert await connection.write_if("any") is True
    assert session.asked == 3


async def test_what_may_have_been_sent_is_not_offered_again() -> None:
    mixed = NoHostAvailable("none", {"a": ConnectionBusy("overloaded"), "b": OSError("broken")})
    for error, kind in ((mixed, NotApplied), (OSError("broken"), UnknownOutcome)):
        session = CrowdedSession(full_for=1, error=error)
        with pytest.raises(kind):
            await CassandraConnection(None, session, in_flight_max=1).write("any")
        assert session.asked == 1
