"""What harm is done by a write that comes late, without the fence, and does the store suffer it? On real Cassandra."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest
from minutewheel.store.cassandra import CassandraStore
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.errors import UnknownOutcome
from minutewheel.store.position import write_timestamp
from minutewheel.store.progress import Checkpoint, Marks, NewMarks
from minutewheel.store.task import SHARDS, BucketRow, TaskRow
from msgspec.structs import replace

pytestmark = pytest.mark.real

START = 29_000_000
STALE, PRESENT = 1, 2
ROW = BucketRow(START, 0, START * 60_000, 7, b"record")
TASK = TaskRow("acme/1", 7, 7, START, START * 60_000, "scheduled", 1, "mail", b"digest")


async def opened(connection: CassandraConnection, keyspace: Any) -> CassandraStore:
    store = await CassandraStore.open(connection, keyspace.name)
    await store.set_up(START, [(0, 0, 0)] * SHARDS)
    return store


async def late(wire: Any, write: Coroutine[Any, Any, Any], meanwhile: Coroutine[Any, Any, Any]) -> Any:
    """Send the write, but let it arrive only when the other has been done."""
    wire.hold()
    sent = asyncio.create_task(write)
    await wire.held.wait()
    await meanwhile
    wire.release()
    return await sent


async def by_arrival(connection: CassandraConnection, cql: str) -> None:
    """The double: a plain write whose timestamp is the server's time at its arrival."""
    await connection.write((await connection.prepare(cql)).bind(()))


async def test_without_the_fence_a_late_write_undoes_a_cancellation(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    put = f"INSERT INTO {keyspace.name}.task (shard, part, key, state) VALUES (1, 0, 'acme/1', '%s')"
    stale = await wired.prepare(put % "scheduled")
    await late(wire, wired.write(stale.bind(())), by_arrival(connection, put % "cancelled"))
    select = await connection.prepare(f"SELECT state FROM {keyspace.name}.task WHERE shard = 1 AND part = 0")
    assert await connection.read(select.bind(())) == [("scheduled",)]


async def test_with_the_fence_a_late_write_changes_no_newer_row(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    store, stale = await opened(connection, keyspace), await opened(wired, keyspace)
    cancelled = replace(TASK, state="cancelled")
    old, new = write_timestamp(STALE, 999), write_timestamp(PRESENT, 0)
    await late(wire, stale.write(2, old, [TASK]), store.write(2, new, [cancelled]))
    assert await store.tasks(2, [TASK.key]) == [cancelled]


async def test_without_the_fence_a_late_drop_loses_what_was_filed_since(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    store = await opened(connection, keyspace)
    where = f"(minute, shard, piece, due_ms, filing, record) VALUES ({START}, 3, 0, {ROW.due_ms}, 7, 0x01)"
    drop = await wired.prepare(f"DELETE FROM {keyspace.name}.bucket WHERE minute = {START} AND shard = 3 AND piece = 0")
    await late(wire, wired.write(drop.bind(())), by_arrival(connection, f"INSERT INTO {keyspace.name}.bucket {where}"))
    assert await store.page(3, START, 0, (-1, -1), 9) == []


async def test_with_the_fence_a_late_drop_hides_nothing_that_was_filed_since(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    store, stale = await opened(connection, keyspace), await opened(wired, keyspace)
    old, new = write_timestamp(STALE, 999), write_timestamp(PRESENT, 0)
    await late(wire, stale.drop(4, START, 1, old), store.write(4, new, [ROW]))
    assert await store.page(4, START, 0, (-1, -1), 9) == [ROW]


async def test_without_the_condition_a_stale_owner_passes_over_minutes_with_filings(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    store = await opened(connection, keyspace)
    await store.claim(5, STALE, "a", -1)
    jump = await wired.prepare(f"UPDATE {keyspace.name}.progress SET open_minute = {START + 5} WHERE shard = 5")
    await late(wire, wired.write(jump.bind(())), store.claim(5, PRESENT, "b", -1))
    assert (await store.progress(5, -1)).open_minute == START + 5  # a successor never loads what stands before


async def test_with_the_condition_a_late_checkpoint_is_refused_and_writes_nothing(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    store, stale = await opened(connection, keyspace), await opened(wired, keyspace)
    await stale.claim(6, STALE, "a", -1)
    jump = Checkpoint(STALE << 32 | 1, (9, 9, 9), START + 5, START + 4)
    assert await late(wire, stale.record(6, STALE, jump), store.claim(6, PRESENT, "b", -1)) is False
    found = await store.progress(6, -1)
    assert (found.fence, found.open_minute, found.offsets, found.last_checkpoint) == (PRESENT, START, (0, 0, 0), -1)


async def test_a_checkpoint_whose_answer_is_lost_was_done_once(
    keyspace: Any, connection: CassandraConnection, wire: Any, wired: CassandraConnection
) -> None:
    store, cut_off = await opened(connection, keyspace), await opened(wired, keyspace)
    await cut_off.claim(7, PRESENT, "b", -1)
    once = Checkpoint(PRESENT << 32 | 1, (9, 9, 9), START, START - 1, (NewMarks(START, (1, 2)),))
    wire.hold()
    recording = asyncio.create_task(cut_off.record(7, PRESENT, once))
    await wire.held.wait()
    wire.lose_next_answer()
    wire.release()
    await wire.cut.wait()
    with suppress(UnknownOutcome):  # never NotApplied, and never "refused"
        assert await recording is True
    assert (await store.progress(7, START)).marks == {START: Marks({1, 2})}
    assert await store.record(7, PRESENT, once) is True
    assert (await store.progress(7, START)).offsets == (9, 9, 9)
