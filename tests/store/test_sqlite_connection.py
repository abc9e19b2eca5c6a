import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from minutewheel.store.errors import NewerSchema, NotApplied, StoreError, UnknownOutcome
from minutewheel.store.sqlite_connection import Connection, GroupCommit, OneThread, Schema, at_once

SCHEMA = Schema(
    3,
    "CREATE TABLE parent (id INTEGER PRIMARY KEY);"
    "CREATE TABLE child (of INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)",
)


def add(db: sqlite3.Connection, number: int) -> None:
    db.execute("INSERT INTO parent VALUES (?)", (number,))


def count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM parent").fetchone()[0])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "file.sqlite")


def test_what_is_written_stands_in_the_file(path: str) -> None:
    first = Connection.open(path, SCHEMA)
    first.write(add, 1)
    first.close()
    again = Connection.open(path, SCHEMA)
    assert again.read(count) == 1
    again.close()


def test_the_file_is_as_durable_as_asked(path: str) -> None:
    connection = Connection.open(path, SCHEMA)
    assert connection.read(lambda db: db.execute("PRAGMA journal_mode").fetchone()) == ("wal",)
    assert connection.read(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (2,)
    connection.close()
    relaxed = Connection.open(path, SCHEMA, synchronous="NORMAL")
    assert relaxed.read(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (1,)
    relaxed.close()


def test_a_file_of_a_later_release_is_refused_and_left_as_it_is(path: str) -> None:
    Connection.open(path, Schema(4, "CREATE TABLE later (a)")).close()
    before = Path(path).read_bytes()
    with pytest.raises(NewerSchema, match="has schema 4, this release knows 3"):
        Connection.open(path, SCHEMA)
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("content", [b"this is no database, but long enough to be taken for one" * 100])
def test_a_file_of_another_kind_is_a_store_error(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    with pytest.raises(StoreError, match="not a database") as caught:
        Connection.open(path, SCHEMA)
    assert isinstance(caught.value.__cause__, sqlite3.Error)


def test_a_file_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="unable to open"):
        Connection.open(str(tmp_path / "missing" / "file.sqlite"), SCHEMA)


def test_work_that_fails_is_not_applied_at_all(path: str) -> None:
    connection = Connection.open(path, SCHEMA)

    def half(db: sqlite3.Connection) -> None:
        add(db, 1)
        add(db, 1)

    with pytest.raises(NotApplied) as caught:
        connection.write(half)
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)
    assert connection.read(count) == 0
    connection.write(add, 1)
    assert connection.read(count) == 1
    connection.close()


def test_an_error_of_the_work_itself_passes_and_undoes_it(path: str) -> None:
    connection = Connection.open(path, SCHEMA)

    def refused(db: sqlite3.Connection) -> None:
        add(db, 1)
        raise LookupError("of our own")

    with pytest.raises(LookupError):
        connection.write(refused)
    assert connection.read(count) == 0
    connection.close()


def test_a_commit_that_fails_is_an_unknown_outcome(path: str) -> None:
    """A reference that is checked at the commit makes a real one fail."""
    connection = Connection.open(path, SCHEMA)
    connection._db.execute("PRAGMA foreign_keys = ON")
    with pytest.raises(UnknownOutcome) as caught:
        connection.write(lambda db: db.execute("INSERT INTO child VALUES (99)"))
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)
    connection.write(add, 1)
    assert connection.read(count) == 1
    connection.close()


def test_a_full_disk_is_not_applied_and_passes(path: str) -> None:
    connection = Connection.open(path, SCHEMA)
    connection.write(lambda db: db.execute("CREATE TABLE big (a)"))
    (pages,) = connection.read(lambda db: db.execute("PRAGMA page_count").fetchone())

    def fill(db: sqlite3.Connection) -> None:
        add(db, 1)
        db.execute("INSERT INTO big VALUES (zeroblob(1000000))")

    connection._db.execute(f"PRAGMA max_page_count = {pages + 10}")
    with pytest.raises(NotApplied, match="full"):
        connection.write(fill)
    assert connection.read(count) == 0
    connection._db.execute("PRAGMA max_page_count = 1000000")
    connection.write(fill)
    assert connection.read(count) == 1
    connection.close()


def test_a_second_writer_does_not_begin_before_its_turn_and_gives_up_when_its_patience_ends(path: str) -> None:
    one = Connection.open(path, SCHEMA)
    other = Connection.open(path, SCHEMA, busy_timeout_ms=0)
    begun: list[sqlite3.Connection] = []

    def meanwhile(db: sqlite3.Connection) -> None:
        add(db, 1)
        with pytest.raises(NotApplied, match="locked"):
            other.write(begun.append)

    one.write(meanwhile)
    assert not begun
    other.write(add, 2)
    assert one.read(count) == 2
    one.close()
    other.close()


def test_writers_take_turns_and_none_decides_on_an_old_view(path: str) -> None:
    """What each reads before it writes must still be so when it writes, or the numbers would collide."""

    def next_number(db: sqlite3.Connection) -> None:
        add(db, count(db))

    def work(connection: Connection) -> None:
        for _ in range(100):
            connection.write(next_number)

    both = [Connection.open(path, SCHEMA, synchronous="OFF") for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(work, both)) == [None, None]
    assert both[0].read(count) == 200
    for connection in both:
        connection.close()


def test_readers_do_not_wait_for_the_writer_nor_it_for_them(path: str) -> None:
    writer, reader = Connection.open(path, SCHEMA), Connection.open(path, SCHEMA, busy_timeout_ms=0)

    def writing(db: sqlite3.Connection) -> None:
        add(db, 1)
        assert reader.read(count) == 0

    def reading(db: sqlite3.Connection) -> None:
        assert count(db) == 1
        writer.write(add, 2)
        assert count(db) == 1

    writer.write(writing)
    reader.read(reading)
    assert reader.read(count) == 2
    writer.close()
    reader.close()


def test_a_closed_connection_applies_nothing(path: str) -> None:
    connection = Connection.open(path, SCHEMA)
    connection.close()
    with pytest.raises(NotApplied):
        connection.write(add, 1)
    with pytest.raises(NotApplied):
        connection.read(count)


def test_a_file_that_another_makes_just_now_is_waited_for(path: str) -> None:
    maker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    maker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        Connection.open(path, SCHEMA, busy_timeout_ms=0)
    made = threading.Timer(0.1, maker.execute, ["COMMIT"])  # nothing tells when the opener has met the lock
    made.start()
    Connection.open(path, SCHEMA).close()
    made.join()
    maker.close()


OPENER = """
import sys
from minutewheel.store.sqlite_connection import Connection, Schema
sys.stdin.readline()
Connection.open(sys.argv[1], Schema(1, "CREATE TABLE t (a)")).write(lambda db: db.execute("INSERT INTO t VALUES (1)"))
"""


def test_several_processes_may_make_a_file_at_once(path: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", OPENER, path], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[1] for process in processes] == [""] * 4
    connection = Connection.open(path, Schema(1, ""))
    assert connection.read(lambda db: db.execute("SELECT count(*) FROM t").fetchone()) == (4,)
    connection.close()


async def test_one_thread_runs_all_in_turn_beside_the_loop() -> None:
    ran: list[tuple[int, int]] = []
    async with OneThread("test") as call:
        await asyncio.gather(*(call(lambda n: ran.append((n, threading.get_ident())), n) for n in range(20)))
    assert [n for n, _ in ran] == list(range(20))
    assert {ident for _, ident in ran}.isdisjoint({threading.get_ident()})
    assert len({ident for _, ident in ran}) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("test")]


async def test_one_thread_ends_only_after_what_was_asked() -> None:
    release = threading.Event()
    done: list[int] = []
    call = OneThread("test")
    first = asyncio.create_task(call(release.wait))
    second = asyncio.create_task(call(done.append, 1))
    closing = asyncio.create_task(call.close())
    await asyncio.sleep(0)
    assert not closing.done()
    release.set()
    await closing
    assert await first
    await second
    assert done == [1]


async def test_a_call_gives_back_what_the_work_raises() -> None:
    async with OneThread("test") as thread:
        for call in (thread, at_once):
            with pytest.raises(ZeroDivisionError):
                await call(lambda: 1 // 0)
            assert await call(max, 1, 2) == 2


def test_at_once_never_waits() -> None:
    with pytest.raises(StopIteration) as finished:
        at_once(threading.get_ident).send(None)
    assert finished.value.value == threading.get_ident()


def commits(connection: Connection) -> list[str]:
    """Every COMMIT from now on."""
    seen: list[str] = []
    connection._db.set_trace_callback(lambda sql: seen.append(sql) if sql == "COMMIT" else None)
    return seen


async def while_the_thread_is_busy(call: OneThread, *writes: Coroutine[Any, Any, Any]) -> list[Any]:
    """Let all of them wait before the first has its turn; their answers or errors."""
    release = threading.Event()
    stuck = asyncio.create_task(call(release.wait))
    waiting = [asyncio.create_task(write) for write in writes]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    release.set()
    await stuck
    return await asyncio.gather(*waiting, return_exceptions=True)


async def test_writes_that_wait_together_are_committed_together(path: str) -> None:
    async with OneThread("test") as call:
        connection = Connection.open(path, SCHEMA)
        group = GroupCommit(connection, call)
        seen = commits(connection)
        answers = await while_the_thread_is_busy(call, *(group.write(add, n) for n in range(10)))
        assert answers == [None] * 10
        assert len(seen) == 1
        assert await group.write(count) == 10
        connection.close()


async def test_a_write_that_fails_in_a_group_fails_alone(path: str) -> None:
    def refused(db: sqlite3.Connection) -> None:
        add(db, 3)
        raise LookupError("of our own")

    def half(db: sqlite3.Connection) -> None:
        add(db, 4)
        add(db, 1)

    async with OneThread("test") as call:
        connection = Connection.open(path, SCHEMA)
        group = GroupCommit(connection, call)
        writes = [group.write(add, 1), group.write(half), group.write(refused), group.write(add, 2)]
        first, halved, own, last = await while_the_thread_is_busy(call, *writes)
        assert (first, last) == (None, None)
        assert isinstance(halved, NotApplied)
        assert isinstance(halved.__cause__, sqlite3.IntegrityError)
        assert isinstance(own, LookupError)
        assert connection.read(count) == 2
        connection.close()


async def test_a_commit_that_fails_is_unknown_to_all_of_the_group(path: str) -> None:
    async with OneThread("test") as call:
        connection = Connection.open(path, SCHEMA)
        connection._db.execute("PRAGMA foreign_keys = ON")
        group = GroupCommit(connection, call)
        orphan = group.write(lambda db: db.execute("INSERT INTO child VALUES (99)").rowcount)
        answers = await while_the_thread_is_busy(call, group.write(add, 1), orphan)
        assert [type(answer) for answer in answers] == [UnknownOutcome, UnknownOutcome]
        assert await group.write(count) == 0
        connection.close()


async def test_whatever_ends_a_group_none_of_it_is_taken_for_done(path: str) -> None:
    class Ended(BaseException):
        pass

    def ends(_: sqlite3.Connection) -> None:
        raise Ended

    async with OneThread("test") as call:
        connection = Connection.open(path, SCHEMA)
        group = GroupCommit(connection, call)
        answers = await while_the_thread_is_busy(call, group.write(add, 1), group.write(ends), group.write(add, 2))
        assert [type(answer) for answer in answers] == [Ended] * 3
        assert await group.write(count) == 0
        connection.close()


async def test_a_write_that_is_given_up_before_its_turn_never_runs(path: str) -> None:
    async with OneThread("test") as call:
        connection = Connection.open(path, SCHEMA)
        group = GroupCommit(connection, call)
        release = threading.Event()
        stuck = asyncio.create_task(call(release.wait))
        given_up, kept = (asyncio.create_task(group.write(add, n)) for n in (1, 2))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        release.set()
        await asyncio.gather(stuck, kept)
        assert connection.read(lambda db: db.execute("SELECT id FROM parent").fetchall()) == [(2,)]
        connection.close()
