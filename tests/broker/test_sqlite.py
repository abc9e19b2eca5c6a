import asyncio
import contextlib
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from minutewheel.broker import sqlite, sqlite_watch
from minutewheel.broker.errors import BrokerError, Unpublishable
from minutewheel.broker.port import Fetched, Produced
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message
from minutewheel.store.errors import UnknownOutcome
from minutewheel.store.sqlite_connection import Connection, OneThread, at_once

LONG_MS = 60_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[SqliteBroker]:
    async with OneThread("broker") as call:
        opened = await SqliteBroker.open(str(tmp_path / "broker.sqlite"), call, wall_ms, synchronous="OFF")
        await opened.create_topics({"t": 4})
        yield opened
        await opened.close()


CHILD = """
import asyncio, sys, time
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message
from minutewheel.store.sqlite_connection import OneThread

async def main(path, batches):
    broker = await SqliteBroker.open(path, OneThread("broker"), lambda: time.time_ns() // 1_000_000)
    await broker.create_topics({"t": 4})
    for n in range(batches):
        answers = await broker.produce([Message("t", None, b"%d" % (n * 8 + i), (), i % 4) for i in range(8)])
        print(*(f"{a.partition}:{a.offset}" for a in answers), flush=True)
    await asyncio.sleep(60)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def child(path: Path, batches: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHILD, str(path), str(batches), stdout=asyncio.subprocess.PIPE
    )


async def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "broker.sqlite"
    process = await child(path, 1_000_000)
    assert process.stdout is not None
    acknowledged = [(await process.stdout.readline()).decode().split() for _ in range(40)]
    process.kill()
    acknowledged += [line.decode().split() async for line in process.stdout if line.endswith(b"\n")]
    await process.wait()
    async with OneThread("broker") as call:
        broker = await SqliteBroker.open(str(path), call, wall_ms)
        found = {}
        for partition in range(4):
            records = (await broker.fetch("t", partition, 0, 1_000_000, 0)).records
            assert [record.offset for record in records] == list(range(len(records)))
            found.update({f"{partition}:{record.offset}": record.value for record in records})
        await broker.close()
    for n, places in enumerate(acknowledged):
        assert [found[place] for place in places] == [b"%d" % (n * 8 + i) for i in range(8)]


async def test_a_waiting_fetch_sees_what_another_process_produces(tmp_path: Path) -> None:
    path = tmp_path / "broker.sqlite"
    async with OneThread("broker") as call:
        broker = await SqliteBroker.open(str(path), call, wall_ms)
        await broker.create_topics({"t": 4})
        waiting = [asyncio.create_task(broker.fetch("t", n, 0, 10, LONG_MS)) for n in range(4)]
        await broker.bounds("t", [0])
        process = await child(path, 1)
        fetched = [await each for each in waiting]
        process.kill()
        await process.communicate()
        await broker.close()
    assert [each.records[0].value for each in fetched] == [b"0", b"1", b"2", b"3"]


async def test_many_can_make_the_same_new_file_at_once(tmp_path: Path) -> None:
    async def open_one(call: OneThread) -> None:
        opened = await SqliteBroker.open(str(tmp_path / "broker.sqlite"), call, wall_ms)
        await opened.create_topics({"t": 4})
        assert await opened.topics() == {"t": 4}
        await opened.close()

    calls = [OneThread(f"broker-{n}") for n in range(8)]
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(open_one(call))
    for call in calls:
        await call.close()


def run_without_a_loop(work: Coroutine[Any, Any, Fetched]) -> Fetched:
    with pytest.raises(StopIteration) as stopped:
        work.send(None)
    fetched: Fetched = stopped.value.value
    return fetched


def test_in_memory_nothing_waits_and_no_loop_is_needed() -> None:
    async def life() -> Fetched:
        broker = await SqliteBroker.open(":memory:", at_once, lambda: 77)
        await broker.create_topics({"t": 1})
        member = await broker.join("workers", ["t"], "m")
        assert await member.poll(10, 0) == []
        await broker.produce([Message("t", b"k", b"v")])
        (record,) = await member.poll(10, 0)
        await member.commit({("t", 0): record.offset + 1})
        await member.leave()
        fetched = await broker.fetch("t", 0, 0, 10, 0)
        await broker.close()
        return fetched

    (record,) = run_without_a_loop(life()).records
    assert (record.value, record.time_ms) == (b"v", 77)


async def test_a_message_may_be_as_large_as_is_allowed_and_no_larger(broker: SqliteBroker) -> None:
    fits = Message("t", b"k" * 100, b"v" * 999_900, (), 0)
    answers = await broker.produce([fits, Message("t", fits.key, b"v" * 999_901, (), 0)])
    assert isinstance(answers[0], Produced)
    assert isinstance(answers[1], Unpublishable)
    headers = (("h", b"x" * 1_000_000),)
    (answer,) = await broker.produce([Message("t", None, None, headers, 0)])
    assert isinstance(answer, Unpublishable)


async def test_while_another_writes_for_too_long_nothing_is_produced(
    broker: SqliteBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE_S", 0.02)
    other = sqlite3.connect(tmp_path / "broker.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    batch = [Message("t", None, b"1", (), 0), Message("no.such", None, b"2"), Message("t", None, b"x" * 1_000_001)]
    answers = await broker.produce(batch)
    assert [type(answer) for answer in answers] == [BrokerError, BrokerError, Unpublishable]
    other.execute("ROLLBACK")
    other.close()
    assert (await broker.fetch("t", 0, 0, 10, 0)).end_offset == 0
    again = await broker.produce(batch[:1])
    assert isinstance(again[0], Produced)


async def test_a_file_that_is_none_is_an_error_of_the_broker(tmp_path: Path) -> None:
    (tmp_path / "broker.sqlite").write_bytes(b"no database" * 1_000)
    with pytest.raises(BrokerError):
        await SqliteBroker.open(str(tmp_path / "broker.sqlite"), at_once, wall_ms)


async def test_after_the_close_every_verb_is_an_error_of_the_broker() -> None:
    broker = await SqliteBroker.open(":memory:", at_once, wall_ms)
    await broker.create_topics({"t": 1})
    await broker.close()
    assert [type(answer) for answer in await broker.produce([Message("t", None, b"")])] == [BrokerError]
    for verb in (broker.topics(), broker.fetch("t", 0, 0, 1, 0), broker.bounds("t", [0]), broker.join("g", ["t"], "m")):
        with pytest.raises(BrokerError):
            await verb


class Counting:
    """A call that keeps the names of what it ran."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
        self.ran: list[str] = []

    async def __call__(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.ran.append(" ".join(arg.__name__ for arg in (fn, *args) if callable(arg)))
        return await self.call(fn, *args)


async def test_idle_partitions_cost_no_reading() -> None:
    call = Counting(at_once)
    broker = await SqliteBroker.open(":memory:", call, wall_ms)
    topics = ("submit", "forwarded", "outcomes")
    await broker.create_topics(dict.fromkeys(topics, 64))
    async with asyncio.TaskGroup() as group:
        waiting = {
            (topic, n): group.create_task(broker.fetch(topic, n, 0, 10, LONG_MS)) for topic in topics for n in range(64)
        }
        await asyncio.sleep(0)
        call.ran.clear()
        await broker.produce([Message("outcomes", None, b"x", (), 17)])
        fetched = await waiting.pop(("outcomes", 17))
        reads = [ran for ran in call.ran if "read" in ran]
        for each in waiting.values():
            each.cancel()
    assert len(fetched.records) == len(reads) == 1
    await broker.close()


async def test_what_is_produced_here_is_not_waited_for_by_looking(
    broker: SqliteBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_watch, "LOOK_MS", LONG_MS)
    waiting = asyncio.create_task(broker.fetch("t", 2, 0, 10, LONG_MS))
    await broker.bounds("t", [0])
    await broker.produce([Message("t", None, b"x", (), 2)])
    assert [record.value for record in (await waiting).records] == [b"x"]


class Unsure:
    """A connection whose writes are done, though their commits are not known to be."""

    def __init__(self, connection: Connection) -> None:
        self.read, self.close, self._write = connection.read, connection.close, connection.write

    def write(self, work: Callable[..., Any], *args: Any) -> Any:
        self._write(work, *args)
        raise UnknownOutcome("the disk does not say")


async def test_a_write_of_unknown_outcome_is_an_error_and_what_stands_is_seen() -> None:
    broker = await SqliteBroker.open(":memory:", at_once, wall_ms)
    await broker.create_topics({"t": 1})
    sure = broker._file._connection
    broker._file._connection = Unsure(sure)
    (answer,) = await broker.produce([Message("t", None, b"1")])
    assert type(answer) is BrokerError
    broker._file._connection = sure
    (after,) = await broker.produce([Message("t", None, b"2")])
    assert isinstance(after, Produced)
    assert after.offset == 1
    assert [record.value for record in (await broker.fetch("t", 0, 0, 10, 0)).records] == [b"1", b"2"]
    await broker.close()


async def test_what_comes_to_wait_during_a_write_is_written_with_the_next(tmp_path: Path) -> None:
    """One sync serves all of it."""
    async with OneThread("broker") as thread:
        broker = await SqliteBroker.open(str(tmp_path / "broker.sqlite"), thread, wall_ms)
        await broker.create_topics({"t": 4})
        go_on = threading.Event()
        occupied = asyncio.create_task(thread(go_on.wait))
        waiting = [asyncio.create_task(broker.produce([Message("t", None, b"%d" % n)])) for n in range(64)]
        await asyncio.sleep(0)
        go_on.set()
        await occupied
        await asyncio.gather(*waiting)
        with contextlib.closing(sqlite3.connect(tmp_path / "broker.sqlite")) as reader:
            changes = reader.execute('SELECT count(DISTINCT moved) FROM log WHERE "end" > 0').fetchone()[0]
        await broker.close()
    assert changes == 1


async def test_a_cancelled_produce_is_not_written_later() -> None:
    gate = asyncio.Event()

    async def gated(fn: Callable[..., Any], *args: Any) -> Any:
        await gate.wait()
        return fn(*args)

    gate.set()
    broker = await SqliteBroker.open(":memory:", gated, wall_ms)
    await broker.create_topics({"t": 1})
    gate.clear()
    cancelled = asyncio.create_task(broker.produce([Message("t", None, b"cancelled")]))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    gate.set()
    await broker.produce([Message("t", None, b"later")])
    assert [record.value for record in (await broker.fetch("t", 0, 0, 10, 0)).records] == [b"later"]
    await broker.close()
