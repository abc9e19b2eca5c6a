"""kill −9 of `minutewheel dev` at random points, over and over: nothing is lost, and each effect stands once."""

import asyncio
import os
import random
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from minutewheel import Accepted, Submission
from minutewheel.broker.due import parse_due
from minutewheel.settings import load
from minutewheel.wiring import Installation, opened

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

KILLS = 25
TASKS = 5_000
ROUND_MS = 1_500
QUIET_S = 120


class Filing(NamedTuple):
    """Where a filing stands, and its number."""

    shard: int
    minute: int
    number: int


@asynccontextmanager
async def dev(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A `minutewheel dev` that serves; whoever uses it ends it."""
    environment = {**os.environ, "EFFECTS": str(folder / "effects.sqlite"), "PYTHONPATH": str(Path(__file__).parent)}
    command = ["dev", "--app", "effects_app:app", "--data", str(folder / "data"), "--json"]
    with (folder / "dev.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("minutewheel"),
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env=environment,
        )
        assert process.stdout
        try:
            line = await asyncio.wait_for(process.stdout.readline(), 60)
            assert line, (folder / "dev.log").read_text()[-2_000:]
            assert msgspec.json.decode(line)["serving"]
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def effects(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "effects.sqlite", timeout=30)


async def submit_all(installation: Installation, seed: int) -> dict[str, int]:
    """Submit the tasks over the rounds, each due soon after; return key → due_ms of those accepted."""
    draw = random.Random(seed)
    client = installation.client()
    due: dict[str, int] = {}
    part = TASKS // KILLS
    for first in range(0, TASKS, part):
        now_ms = installation.clock.now_ms()
        wanted = {f"t{n}": now_ms + draw.randrange(0, 2 * ROUND_MS) for n in range(first, first + part)}
        tasks = [Submission(id=i, queue="effects", payload=b"1", due=at) for i, at in wanted.items()]
        async for answer in client.submit_many(tasks):
            assert isinstance(answer, Accepted), answer
            due[answer.key] = wanted[answer.key.partition("/")[2]]
        await asyncio.sleep(ROUND_MS / 1_000)  # about as long as a round with its start: load on all of them
    return due


async def deliveries(installation: Installation) -> dict[Filing, list[int]]:
    """When each filing was published, each time."""
    found: dict[Filing, list[int]] = {}
    topic = installation.topics.due("effects")
    for partition in range(64):
        fetched = await installation.broker.fetch(topic, partition, 0, 1_000_000, 0)
        for record in fetched.records:
            due = parse_due(record)
            found.setdefault(Filing(due.shard, due.minute, due.filing), []).append(record.time_ms)
    return found


async def recorded(installation: Installation) -> Callable[[Filing], bool]:
    """What the checkpoints so far hold: whether a filing is marked, or its minute closed."""
    progress = [await installation.store.progress(shard, 1 << 40) for shard in range(64)]

    def knows(filing: Filing) -> bool:
        its = progress[filing.shard]
        closed = filing.minute < its.open_minute or filing.minute in its.closed
        return closed or filing.number in its.marks.get(filing.minute, ())

    return knows


async def wait_done(folder: Path, wanted: int) -> None:
    """Until the effects are all there, or nothing has come for long enough to call it lost."""
    until = time.monotonic() + QUIET_S
    with effects(folder) as file:
        while file.execute("SELECT count(*) FROM effect").fetchone()[0] < wanted and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.2)  # another process writes the file: there is nothing to wait for


async def test_nothing_is_lost_and_no_effect_is_doubled_over_25_kills(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    draw = random.Random(seed)
    settings = load({"data": tmp_path / "data"}).settings
    kills: list[tuple[int, Callable[[Filing], bool]]] = []
    async with opened(settings) as installation:
        await installation.declare(["effects"])
        submitting = asyncio.create_task(submit_all(installation, seed))
        for _ in range(KILLS):
            async with dev(tmp_path) as process:
                await asyncio.sleep(draw.uniform(0, ROUND_MS / 1_000))
                process.kill()
                await process.wait()
            kills.append((installation.clock.now_ms(), await recorded(installation)))
        due = await submitting
        async with dev(tmp_path) as process:
            await wait_done(tmp_path, len(due))
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 60) == 0
        published = await deliveries(installation)
    with effects(tmp_path) as file:
        done = [key for (key,) in file.execute("SELECT key FROM effect")]
        starts = file.execute("SELECT key, at_ms FROM start").fetchall()
    repeats = {filing: times for filing, times in published.items() if len(times) > 1}
    kept = sum(any(knows(filing) for _, knows in kills) for filing in published)
    print(f"\nseed {seed}: {len(due)} accepted, {len(done)} effects, {len(starts) - len(done)} extra starts,", end=" ")
    print(f"{sum(len(times) - 1 for times in repeats.values())} repeated deliveries over {KILLS} kills,", end=" ")
    print(f"{kept} filings were recorded before one")
    assert len(due) == TASKS
    assert sorted(done) == sorted(due)  # none lost, none twice
    assert all(at_ms >= due[key] for key, at_ms in starts)  # none early
    assert kept > TASKS // 10
    for filing, times in published.items():
        for kill_ms, knows in kills:
            assert times[-1] <= kill_ms or not knows(filing), "what a checkpoint held was delivered again"
    for times in repeats.values():
        for first, again in pairwise(times):
            assert any(first <= kill_ms <= again for kill_ms, _ in kills), (times, kills)
