"""What the conformance suite can't see: the file, its processes and its death."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from minutewheel.store.errors import NewerSchema, NotApplied
from minutewheel.store.progress import Checkpoint, NewMarks
from minutewheel.store.sqlite import SCHEMA, SqliteStore
from minutewheel.store.sqlite_connection import Connection, OneThread, Schema, at_once
from minutewheel.store.task import SHARDS, BucketRow, TaskRow

START = 29_000_000

WRITER = """
import asyncio, sys
from minutewheel.store.progress import Checkpoint, NewMarks
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.task import BucketRow, TaskRow

async def main():
    store = await SqliteStore.open(sys.argv[1], at_once)
    await store.set_up(29_000_000, [(0, 0, 0)] * 64)
    progress = await store.claim(3, int(sys.argv[2]), sys.argv[2], 29_000_000)
    n = progress.offsets[0]
    while True:
        n += 1
        bucket = [BucketRow(29_000_000, 0, n, n * 100 + i, bytes(200)) for i in range(20)]
        tasks = [TaskRow(f"acme/{n}-{i}", n, n, 0, 0, "scheduled", 1, "mail", b"") for i in range(20)]
        await store.write(3, n, bucket + tasks)
        print("rows", n, flush=True)
        await store.record(3, int(sys.argv[2]), Checkpoint(n, (n, 0, 0), 0, 0, (NewMarks(29_000_000, (n,)),)))
        print("marks", n, flush=True)

asyncio.run(main())
"""


def written_until_killed(path: str, fence: int, after: int) -> dict[str, int]:
    """Let a process write, kill it after so many acknowledgements, and tell the last of each kind."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, path, str(fence)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = {"rows": 0, "marks": 0}
    for count, line in enumerate(process.stdout, 1):
        if line.endswith("\n"):
            what, number = line.split()
            acknowledged[what] = int(number)
        if count == after:
            os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    return acknowledged


async def test_all_that_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    random_ = random.Random(28)
    total = 0
    for fence in range(1, 6):
        acknowledged = written_until_killed(path, fence, random_.randrange(2, 90))
        store = await SqliteStore.open(path, at_once)
        progress = await store.progress(3, START)
        last = progress.offsets[0]
        assert progress.fence == fence
        assert last >= acknowledged["marks"] >= total
        assert progress.marks[START].fired == set(range(1, last + 1))
        total = acknowledged["rows"]
        rows = await store.page(3, START, 0, (0, 0), 1_000_000)
        assert {row.filing for row in rows} >= {n * 100 + i for n in range(1, total + 1) for i in range(20)}
        keys = [f"acme/{n}-{i}" for n in range(1, total + 1) for i in range(20)]
        assert len(await store.tasks(3, keys)) == len(keys)
        await store.close()


async def test_several_processes_have_the_store_open_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    async with OneThread("one") as one, OneThread("other") as other, OneThread("third") as third:
        mine = await SqliteStore.open(path, one)
        theirs = await SqliteStore.open(path, other, third)
        await mine.set_up(START, [(0, 0, 0)] * SHARDS)
        await theirs.claim(3, 1, "b", START)
        rows = [TaskRow(f"acme/{n}", n, n, 0, 0, "scheduled", 1, "mail", b"") for n in range(50)]
        await asyncio.gather(*(store.write(3, 1, rows[k::2]) for k, store in enumerate((mine, theirs))))
        keys = [row.key for row in rows]
        assert len(await mine.tasks(3, keys)) == len(await theirs.tasks(3, keys)) == 50
        assert (await mine.progress(3, START)).member == "b"
        await theirs.close()
        await mine.close()


async def test_a_look_up_does_not_wait_behind_the_writes(tmp_path: Path) -> None:
    async with OneThread("writes") as writes, OneThread("look-ups") as look_ups:
        store = await SqliteStore.open(str(tmp_path / "store.sqlite"), writes, look_ups)
        await store.set_up(START, [(0, 0, 0)] * SHARDS)
        release = threading.Event()
        stuck = asyncio.create_task(writes(release.wait))
        queued = asyncio.create_task(store.write(3, 1, [BucketRow(START, 0, 0, 1, b"")]))
        assert await store.page(3, START, 0, (-1, -1), 9) == []
        release.set()
        await asyncio.gather(stuck, queued)
        assert len(await store.page(3, START, 0, (-1, -1), 9)) == 1
        await store.close()


async def test_a_serial_read_waits_for_the_write_before_it(tmp_path: Path) -> None:
    """Even one whose caller was cancelled meanwhile: that is how an unknown outcome is resolved."""
    async with OneThread("writes") as writes, OneThread("look-ups") as look_ups:
        store = await SqliteStore.open(str(tmp_path / "store.sqlite"), writes, look_ups)
        await store.set_up(START, [(0, 0, 0)] * SHARDS)
        await store.claim(3, 1, "a", START)
        release, begun = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def slow() -> bool:
            loop.call_soon_threadsafe(begun.set)
            release.wait()
            return store._writer.write(lambda db: db.execute("UPDATE progress SET last_checkpoint = 77").rowcount > 0)

        write = asyncio.create_task(writes(slow))
        await begun.wait()
        write.cancel()
        read = asyncio.create_task(store.progress(3, START))
        release.set()
        assert (await read).last_checkpoint == 77
        await store.close()


async def test_a_closed_store_applies_nothing(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "store.sqlite"), at_once)
    await store.set_up(START, [(0, 0, 0)] * SHARDS)
    await store.close()
    with pytest.raises(NotApplied):
        await store.record(3, 0, Checkpoint(1, (0, 0, 0), START, START, (NewMarks(START, (1,)),)))
    with pytest.raises(NotApplied):
        await store.tasks(3, ["acme/1"])


async def test_a_store_of_a_later_release_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    Connection.open(path, Schema(SCHEMA.version + 1, "CREATE TABLE later (a)")).close()
    with pytest.raises(NewerSchema):
        await SqliteStore.open(path, at_once)


async def test_pruning_walks_all_shards() -> None:
    store = await SqliteStore.open(":memory:", at_once)
    old = TaskRow("acme/1", 1, 1, 0, 0, "done", 1, "mail", b"", updated_ms=1)
    for shard in (0, SHARDS - 1):
        await store.write(shard, 1, [old])
    assert await store.prune(now_ms=10, retention_ms=5) == 2
    assert await store.prune(now_ms=10, retention_ms=5) == 0
    await store.close()
