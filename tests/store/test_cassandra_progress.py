"""Is what grows computed rightly, an unknown outcome resolved by reading, and a long history no burden?"""

import statistics
import time
from typing import Any

import pytest
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.cassandra_progress import CassandraProgress, Stored, advanced, marks_to_write
from minutewheel.store.errors import UnknownOutcome
from minutewheel.store.progress import Checkpoint, Marks, NewMarks
from minutewheel.store.task import SHARDS

START = 29_000_000
BEFORE = Stored(3, "a", START, START - 1, (5, 5, 5), 1, {START: 2, START + 9: 3}, frozenset({START + 1}))


def test_what_grows_never_goes_back() -> None:
    after = advanced(BEFORE, Checkpoint(2, (4, 6, 5), START - 3, START - 4, pieces=((START, 1),)))
    assert (after.offsets, after.open_minute, after.dropped_minute) == ((5, 6, 5), START, START - 1)
    assert after.pieces == BEFORE.pieces


def test_what_lies_below_the_open_and_the_dropped_minute_is_let_go() -> None:
    after = advanced(BEFORE, Checkpoint(2, (5, 5, 5), START + 2, START + 1, closed=(START, START + 4)))
    assert (after.closed, after.pieces) == ({START + 4}, {START + 9: 3})


def test_marks_are_written_for_open_minutes_alone() -> None:
    after = advanced(BEFORE, Checkpoint(2, (5, 5, 5), START, START - 1, closed=(START + 2,)))
    new = [NewMarks(START + n, (n,), (10 + n,)) for n in (-1, 0, 1, 2, 3, 3)]
    assert marks_to_write(after, new) == {START: Marks({0}, {10}), START + 3: Marks({3}, {13})}


class Unsure:
    """The connection, where the next conditional write has no answer: done, or not."""

    def __init__(self, connection: CassandraConnection) -> None:
        self._connection = connection
        self.sent = 0
        self.faults: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def write_if(self, statement: Any) -> bool:
        self.sent += 1
        if not self.faults:
            return await self._connection.write_if(statement)
        if self.faults.pop(0):
            await self._connection.write_if(statement)
        raise UnknownOutcome("timed out")


@pytest.mark.real
@pytest.mark.parametrize(("shard", "done"), [(20, True), (21, False)])
async def test_an_unknown_claim_and_checkpoint_are_resolved_by_reading(
    keyspace: Any, connection: CassandraConnection, shard: int, done: bool
) -> None:
    unsure: Any = Unsure(connection)
    progress = await CassandraProgress.open(unsure, keyspace.name)
    await progress.set_up(START, [(0, 0, 0)] * SHARDS)
    unsure.sent, unsure.faults = 0, [done]
    claimed = await progress.claim(shard, 2, "b", -1)
    assert (claimed.fence, claimed.member, claimed.reigns[0]) == (2, "b", (0, 0, 0))
    assert unsure.sent == (1 if done else 2)  # what was done is not sent again
    unsure.sent, unsure.faults = 0, [done]
    assert await progress.record(shard, 2, Checkpoint(2 << 32, (6, 6, 6), START, START - 1, (NewMarks(START, (1,)),)))
    assert unsure.sent == (1 if done else 2)
    found = await progress.progress(shard, START)
    assert (found.offsets, found.marks) == ((6, 6, 6), {START: Marks({1})})


@pytest.mark.real
async def test_a_claim_of_anothers_after_an_unknown_one_is_a_refusal(
    keyspace: Any, connection: CassandraConnection
) -> None:
    unsure: Any = Unsure(connection)
    mine = await CassandraProgress.open(unsure, keyspace.name)
    other = await CassandraProgress.open(connection, keyspace.name)
    await mine.set_up(START, [(0, 0, 0)] * SHARDS)
    await mine.claim(22, 2, "b", -1)
    await other.claim(22, 3, "c", -1)
    unsure.faults = [True]
    assert await mine.record(22, 2, Checkpoint(2 << 32, (6, 6, 6), START, START - 1)) is False
    assert (await other.progress(22, -1)).offsets == (0, 0, 0)


@pytest.mark.real
async def test_twenty_thousand_closed_minutes_do_not_slow_a_checkpoint(
    keyspace: Any, connection: CassandraConnection
) -> None:
    """Where the condition had to pass the tombstones first, it took sixteen times as long; bound: four."""
    progress = await CassandraProgress.open(connection, keyspace.name)
    await progress.set_up(START, [(0, 0, 0)] * SHARDS)
    old, new, count = 23, 24, 0
    for shard in (old, new):
        await progress.claim(shard, 1, "a", -1)
    for first in range(START, START + 20_000, 500):
        span = range(first, first + 500)
        marks = tuple(NewMarks(minute, (minute,)) for minute in span)
        for done in ({"marks": marks}, {"closed": tuple(span)}):
            count += 1
            assert await progress.record(old, 1, Checkpoint(1 << 32 | count, (0, 0, 0), first, first - 1, **done))
    took: dict[int, list[float]] = {old: [], new: []}
    for _ in range(30):
        count += 1
        for shard in (old, new):
            begun = time.perf_counter()
            assert await progress.record(shard, 1, Checkpoint(1 << 32 | count, (0, 0, 0), START, START - 1))
            took[shard].append(time.perf_counter() - begun)
    medians = {shard: statistics.median(times) for shard, times in took.items()}
    print(f"checkpoint after 20,000 closed minutes {medians[old] * 1e3:.1f} ms, new {medians[new] * 1e3:.1f} ms")
    assert medians[old] < 4 * medians[new]
