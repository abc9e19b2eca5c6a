"""Does a store keep its port? Behaviour only, over every twin."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from minutewheel.store.cassandra import CassandraStore
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.errors import ClaimRefused
from minutewheel.store.port import Catalog, Queue, Store
from minutewheel.store.position import (
    INCARNATION_LIMIT,
    INDEX_LIMIT,
    OFFSET_LIMIT,
    POSITION_BITS,
    Log,
    filing_number,
    pack_position,
)
from minutewheel.store.progress import Checkpoint, Closing, Marks, NewMarks, Offsets
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import OneThread, at_once
from minutewheel.store.task import SHARDS, BucketRow, DeadLetter, TaskRow
from msgspec.structs import replace

START = 29_000_000
STARTS: list[Offsets] = [(shard, 100 + shard, 200 + shard) for shard in range(SHARDS)]
SHARD = 7
FAR = START + 1_000
LAST_POSITION = pack_position(INCARNATION_LIMIT - 1, OFFSET_LIMIT - 1, INDEX_LIMIT - 1)
LAST_FILING = filing_number(Log.OUTCOMES, LAST_POSITION)

T = TypeVar("T")
TABLES = ("bucket", "task", "dead_letter", "progress", "closing", "queue")


class Twin(NamedTuple):
    """How an empty store is opened, and how many random histories it is worth."""

    open: Callable[[Path], AbstractAsyncContextManager[Any]]
    histories: int = 25


@asynccontextmanager
async def sqlite_on_disk(folder: Path) -> AsyncIterator[SqliteStore]:
    async with OneThread("writes") as writes, OneThread("look-ups") as look_ups:
        store = await SqliteStore.open(str(folder / "store.sqlite"), writes, look_ups)
        yield store
        await store.close()


@asynccontextmanager
async def sqlite_in_memory(_: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(":memory:", at_once)
    yield store
    await store.close()


@asynccontextmanager
async def on_cassandra(keyspace: Any, _: Path) -> AsyncIterator[CassandraStore]:
    connection = await CassandraConnection.open(keyspace.access)
    for table in TABLES:
        await connection.alter(f"TRUNCATE {keyspace.name}.{table}")
    yield await CassandraStore.open(connection, keyspace.name)
    await connection.close()


TWINS = {"sqlite": Twin(sqlite_on_disk), "sqlite in memory": Twin(sqlite_in_memory)}


@pytest.fixture(params=[*TWINS, pytest.param("real", marks=pytest.mark.real)])
def twin(request: pytest.FixtureRequest) -> Twin:
    if request.param == "real":
        return Twin(partial(on_cassandra, request.getfixturevalue("keyspace")), histories=6)
    return TWINS[request.param]


@pytest.fixture
async def store(twin: Twin, tmp_path: Path) -> AsyncIterator[Store]:
    async with twin.open(tmp_path) as store:
        await store.set_up(START, STARTS)
        yield store


@pytest.fixture
def catalog(store: Any) -> Catalog:
    """The twins keep both ports in one object."""
    return store


def checkpoint(number: int, **changes: Any) -> Checkpoint:
    return replace(Checkpoint(number, (0, 0, 0), START, START - 1), **changes)


def task(key: str, **changes: Any) -> TaskRow:
    return replace(TaskRow(key, 1, 1, START, START * 60_000, "scheduled", 1, "mail", b"\0digest\xff"), **changes)


def row(filing: int, *, minute: int = START, piece: int = 0, due_ms: int | None = None) -> BucketRow:
    return BucketRow(minute, piece, minute * 60_000 if due_ms is None else due_ms, filing, b"record %d" % filing)


def letter(key: str, **changes: Any) -> DeadLetter:
    return replace(DeadLetter(key, 5, "mail", "failed", 3, START * 60_000, b"\0record\xff", "a history"), **changes)


async def whole_bucket(store: Store, minute: int, piece: int = 0, limit: int = 3) -> list[BucketRow]:
    """Page through a piece as the loader does."""
    rows: list[BucketRow] = []
    after = (-1, -1)
    while True:
        page = await store.page(SHARD, minute, piece, after, limit)
        rows += page
        if len(page) < limit:
            return rows
        after = (page[-1].due_ms, page[-1].filing)


# The fence and the claim


async def test_set_up_starts_every_shard_and_may_be_repeated(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, open_minute=START + 5, offsets=(50, 500, 5_000)))
    await store.set_up(START + 99, [(9, 9, 9)] * SHARDS)
    progress = await store.progress(SHARD, FAR)
    assert (progress.fence, progress.open_minute, progress.offsets) == (3, START + 5, (50, 500, 5_000))
    last = await store.progress(SHARDS - 1, FAR)
    assert (last.fence, last.open_minute, last.dropped_minute, last.offsets) == (0, START, START - 1, STARTS[-1])


async def test_a_claim_raises_the_fence_and_remembers_how_far_the_owner_before_got(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, offsets=(50, 500, LAST_POSITION)))
    progress = await store.claim(SHARD, 9, "b", FAR)
    assert (progress.shard, progress.fence, progress.member, progress.last_checkpoint) == (SHARD, 9, "b", 1)
    assert progress.reigns[3] == progress.offsets == (50, 500, LAST_POSITION)
    assert progress.reigns.get(0, STARTS[SHARD]) == STARTS[SHARD]
    assert 9 not in progress.reigns


async def test_a_claim_by_the_same_member_repeated_is_once(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, offsets=(50, 500, 5_000)))
    first = await store.claim(SHARD, 4, "b", FAR)
    await store.record(SHARD, 4, checkpoint(2, offsets=(60, 600, 6_000)))
    again = await store.claim(SHARD, 4, "b", FAR)
    assert again.reigns == first.reigns
    assert again.offsets == (60, 600, 6_000)


@pytest.mark.parametrize(("fence", "member"), [(4, "b"), (3, "a"), (1, "c")])
async def test_a_claim_with_no_higher_fence_is_refused_and_changes_nothing(
    store: Store, fence: int, member: str
) -> None:
    await store.claim(SHARD, 4, "a", FAR)
    with pytest.raises(ClaimRefused) as refused:
        await store.claim(SHARD, fence, member, FAR)
    assert refused.value.stored == 4
    progress = await store.progress(SHARD, FAR)
    assert (progress.fence, progress.member) == (4, "a")


async def test_of_two_claims_at_once_with_one_fence_one_is_granted(store: Store) -> None:
    answers = await asyncio.gather(*(store.claim(SHARD, 4, member, FAR) for member in "ab"), return_exceptions=True)
    assert [isinstance(answer, ClaimRefused) for answer in answers].count(True) == 1


async def test_shards_do_not_touch_each_other(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, marks=(NewMarks(START, (1,)),)))
    await store.write(SHARD, 1, [row(1), task("acme/1"), letter("acme/1")])
    other = await store.progress(SHARD + 1, FAR)
    assert (other.fence, other.marks, other.last_checkpoint) == (0, {}, -1)
    assert await store.page(SHARD + 1, START, 0, (-1, -1), 10) == []
    assert await store.tasks(SHARD + 1, ["acme/1"]) == []
    assert await store.dead_letters(SHARD + 1, "", 10) == []
    assert await store.letters(SHARD + 1, ["acme/1"]) == []


# Checkpoints


@pytest.mark.parametrize("fence", [2, 4])
async def test_a_checkpoint_under_another_fence_writes_nothing(store: Store, fence: int) -> None:
    before = await store.claim(SHARD, 3, "a", FAR)
    stale = checkpoint(
        9, offsets=(99, 999, 9_999), open_minute=START + 9, marks=(NewMarks(START, (1,)),), closed=(START + 9,)
    )
    assert not await store.record(SHARD, fence, stale)
    assert await store.progress(SHARD, FAR) == before


async def test_marks_add_up_over_checkpoints(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    assert await store.record(SHARD, 3, checkpoint(1, marks=(NewMarks(START, (1, 2), (3,)), NewMarks(START + 1, (4,)))))
    assert await store.record(SHARD, 3, checkpoint(2, marks=(NewMarks(START, (5,), (LAST_FILING,)),)))
    progress = await store.progress(SHARD, FAR)
    assert progress.marks == {START: Marks({1, 2, 5}, {3, LAST_FILING}), START + 1: Marks({4})}
    assert progress.last_checkpoint == 2


async def test_an_unknown_checkpoint_repeated_is_once(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    one = checkpoint(1, offsets=(150, 150, 250), marks=(NewMarks(START, (1,)),), pieces=((START, 2),))
    assert await store.record(SHARD, 3, one)
    first = await store.progress(SHARD, FAR)
    assert await store.record(SHARD, 3, one)
    assert await store.progress(SHARD, FAR) == first


async def test_a_late_repeat_does_not_open_a_closed_minute(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    early = checkpoint(1, marks=(NewMarks(START + 1, (1,)), NewMarks(START + 2, (2,))))
    await store.record(SHARD, 3, early)
    await store.record(SHARD, 3, checkpoint(2, closed=(START + 1,)))
    closed = await store.progress(SHARD, FAR)
    assert await store.record(SHARD, 3, early)
    assert await store.progress(SHARD, FAR) == closed
    assert closed.closed == {START + 1}
    assert closed.marks == {START + 2: Marks({2})}


async def test_nothing_retreats(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(
        SHARD, 3, checkpoint(1, offsets=(500, 500, 500), open_minute=START + 9, dropped_minute=START + 8)
    )
    await store.record(
        SHARD, 3, checkpoint(2, offsets=(600, 400, 400), open_minute=START + 5, dropped_minute=START + 4)
    )
    progress = await store.progress(SHARD, FAR)
    assert progress.offsets == (600, 500, 500)
    assert (progress.open_minute, progress.dropped_minute) == (START + 9, START + 8)


async def test_closing_a_minute_puts_a_closed_row_in_the_place_of_its_marks(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, marks=(NewMarks(START, (1,)), NewMarks(START + 1, (2,)))))
    await store.record(SHARD, 3, checkpoint(2, marks=(NewMarks(START + 1, (3,)),), closed=(START + 1, START + 4)))
    progress = await store.progress(SHARD, FAR)
    assert progress.closed == {START + 1, START + 4}
    assert progress.marks == {START: Marks({1})}
    assert await store.marks(SHARD, [START + 1]) in ({}, {START + 1: Marks()})


async def test_closed_minutes_below_the_open_one_are_forgotten(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, closed=(START + 1, START + 5)))
    await store.record(SHARD, 3, checkpoint(2, closed=(START,), open_minute=START + 2))
    progress = await store.progress(SHARD, FAR)
    assert (progress.open_minute, progress.closed) == (START + 2, {START + 5})


async def test_closed_minutes_are_told_whatever_marks_are_asked_for(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, marks=(NewMarks(START, (1,)),), closed=(START + 4, START + 99)))
    assert (await store.progress(SHARD, -1)).closed == {START + 4, START + 99}
    assert (await store.progress(SHARD, -1)).marks == {}
    assert (await store.claim(SHARD, 4, "b", START)).closed == {START + 4, START + 99}


async def test_a_minute_that_is_closed_takes_no_marks(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, closed=(START + 1,)))
    await store.record(SHARD, 3, checkpoint(2, marks=(NewMarks(START + 1, (1,)), NewMarks(START + 2, (2,)))))
    assert (await store.progress(SHARD, FAR)).marks == {START + 2: Marks({2})}
    assert not (await store.marks(SHARD, [START + 1])).get(START + 1)


async def test_a_checkpoint_of_an_owner_before_is_refused_also_by_whoever_recorded_it(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, offsets=(150, 150, 250)))
    successor = await store.claim(SHARD, 4, "b", FAR)
    assert not await store.record(SHARD, 3, checkpoint(2, offsets=(999, 999, 999), closed=(START,)))
    assert await store.progress(SHARD, FAR) == successor
    assert await store.record(SHARD, 4, checkpoint(3, offsets=(160, 160, 260)))
    assert (await store.progress(SHARD, FAR)).offsets == (160, 160, 260)


async def test_thousands_of_marks_in_many_minutes_come_back(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    for number in range(1, 5):
        new = tuple(NewMarks(START + n, tuple(range(number * 1_000, number * 1_000 + 20))) for n in range(300))
        assert await store.record(SHARD, 3, checkpoint(number, marks=new))
    progress = await store.claim(SHARD, 4, "b", FAR)
    expected = {1_000 * number + n for number in range(1, 5) for n in range(20)}
    assert progress.marks == {START + n: Marks(expected) for n in range(300)}


async def test_marks_are_given_up_to_the_minute_asked_for(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    new = tuple(NewMarks(START + n, (), (n,)) for n in range(5))
    await store.record(SHARD, 3, checkpoint(1, marks=new))
    assert set((await store.progress(SHARD, START + 2)).marks) == {START, START + 1, START + 2}
    assert set((await store.claim(SHARD, 4, "b", START)).marks) == {START}
    far = await store.marks(SHARD, [START + 3, START + 4, START + 77])
    assert far[START + 3] == Marks(set(), {3})
    assert START + 2 not in far
    assert not far.get(START + 77)
    assert await store.marks(SHARD, []) == {}


async def test_pieces_stand_until_their_minute_is_dropped(store: Store) -> None:
    await store.claim(SHARD, 3, "a", FAR)
    await store.record(SHARD, 3, checkpoint(1, pieces=((START, 3), (START + 9, 2))))
    await store.record(SHARD, 3, checkpoint(2, closed=(START,), open_minute=START + 1))
    assert (await store.progress(SHARD, FAR)).pieces == {START: 3, START + 9: 2}
    await store.record(SHARD, 3, checkpoint(3, open_minute=START + 1, dropped_minute=START))
    assert (await store.claim(SHARD, 4, "b", FAR)).pieces == {START + 9: 2}


# Plain rows


async def test_writing_twice_is_once(store: Store) -> None:
    rows = [row(1), task("acme/1"), letter("acme/1")]
    await store.write(SHARD, 5, rows)
    await store.write(SHARD, 5, rows)
    assert await whole_bucket(store, START) == [row(1)]
    assert await store.tasks(SHARD, ["acme/1"]) == [task("acme/1")]
    assert await store.dead_letters(SHARD, "", 10) == [letter("acme/1")]


async def test_every_field_of_a_row_comes_back(store: Store) -> None:
    full = TaskRow(
        key="acme/größe 1",
        filing=LAST_FILING,
        origin=LAST_FILING - 1,
        minute=FAR,
        due_ms=FAR * 60_000 + 59_999,
        state="dead",
        attempt=65_535,
        queue="mail.eu",
        digest=b"\0\xff",
        submit_pos=LAST_POSITION,
        forwarded_pos=LAST_POSITION - 1,
        outcome_pos=LAST_POSITION - 2,
        forward_origin=63 << POSITION_BITS | LAST_POSITION,
        answer="too late",
        ended=True,
        updated_ms=253_402_300_799_999,
        note="näher",
    )
    plain = task("acme/plain")
    await store.write(SHARD, (1 << 63) - 1, [full, plain])
    found = {row.key: row for row in await store.tasks(SHARD, ["acme/größe 1", "acme/plain", "acme/none"])}
    assert found == {"acme/größe 1": full, "acme/plain": plain}
    assert found["acme/größe 1"].ended is True
    assert found["acme/plain"].ended is False
    assert plain.forward_origin == -1


async def test_a_delayed_stale_write_is_outranked_where_a_newer_row_stands(store: Store) -> None:
    await store.write(SHARD, 2 << 32, [task("acme/1", state="cancelled"), row(1), letter("acme/1", record=b"")])
    await store.write(SHARD, 1 << 32 | 999, [task("acme/1"), replace(row(1), record=b"stale"), letter("acme/1")])
    assert await store.tasks(SHARD, ["acme/1"]) == [task("acme/1", state="cancelled")]
    assert await whole_bucket(store, START) == [row(1)]
    assert await store.dead_letters(SHARD, "", 10) == []


async def test_a_stale_write_lands_where_no_newer_row_stands(store: Store) -> None:
    """The store knows no fence here: what finds such rows is the owners' rule, and the simulation."""
    await store.claim(SHARD, 2, "b", FAR)
    await store.write(SHARD, 1 << 32, [task("acme/1"), row(1)])
    assert await store.tasks(SHARD, ["acme/1"]) == [task("acme/1")]
    assert await whole_bucket(store, START) == [row(1)]


async def test_of_two_contents_with_one_timestamp_the_order_of_arrival_does_not_decide(store: Store) -> None:
    contents = [[task("acme/1", note=note), replace(row(1), record=note.encode())] for note in ("a", "b")]
    for rows in contents:
        await store.write(1, 5, rows)
    for rows in reversed(contents):
        await store.write(2, 5, rows)
    assert await store.tasks(1, ["acme/1"]) == await store.tasks(2, ["acme/1"])
    assert await store.page(1, START, 0, (-1, -1), 9) == await store.page(2, START, 0, (-1, -1), 9)


async def test_a_drop_hides_what_is_there_and_what_lands_late(store: Store) -> None:
    await store.write(SHARD, 5, [row(1), row(2), row(3, minute=START + 1)])
    await store.write(SHARD, 8, [row(4)])
    await store.drop(SHARD, START, 1, 7)
    await store.write(SHARD, 7, [row(5)])
    assert await whole_bucket(store, START) == [row(4)]
    assert await whole_bucket(store, START + 1) == [row(3, minute=START + 1)]
    assert await store.filings(SHARD, [(START, START * 60_000, n) for n in range(1, 6)]) == [row(4)]
    await store.write(SHARD, 9, [row(5)])
    assert await whole_bucket(store, START) == [row(4), row(5)]


async def test_an_older_drop_changes_nothing_of_a_newer_one(store: Store) -> None:
    await store.drop(SHARD, START, 1, 7)
    await store.drop(SHARD, START, 1, 3)
    await store.write(SHARD, 5, [row(1)])
    assert await whole_bucket(store, START) == []


async def test_a_drop_takes_the_pieces_it_names(store: Store) -> None:
    await store.write(SHARD, 5, [row(n, piece=n) for n in range(3)])
    await store.drop(SHARD, START, 2, 5)
    assert [await whole_bucket(store, START, piece) for piece in range(3)] == [[], [], [row(2, piece=2)]]
    await store.write(SHARD, 5, [row(n, piece=n) for n in range(3)])
    assert await whole_bucket(store, START, 1) == []


async def test_a_page_is_sorted_and_follows_its_place(store: Store) -> None:
    base = START * 60_000
    rows = [row(filing, due_ms=base + due) for due in (0, 1, 59_999) for filing in (1, 2, LAST_FILING)]
    await store.write(SHARD, 5, rows[::-1])
    assert await store.page(SHARD, START, 0, (base, 2), 2) == rows[2:4]
    assert await store.page(SHARD, START, 0, (base + 59_999, LAST_FILING), 2) == []
    for limit in (1, 2, 3, 4, 9, 10):
        assert await whole_bucket(store, START, limit=limit) == rows


async def test_pages_of_large_and_of_small_records_are_whole(store: Store) -> None:
    base = START * 60_000
    large = [replace(row(n, due_ms=base + n), record=bytes(40_000)) for n in range(200)]
    small = [row(n, due_ms=base + n) for n in range(200, 1_500)]
    await store.write(SHARD, 5, [*small, *large])
    for limit in (90, 700, 1_400, 1_500, 9_999):
        assert [found.filing for found in await whole_bucket(store, START, limit=limit)] == list(range(1_500))
    assert await store.page(SHARD, START, 0, (-1, -1), 150) == large[:150]


async def test_pages_of_what_is_not_there_are_empty(store: Store) -> None:
    assert await store.page(SHARD, START, 0, (-1, -1), 10) == []
    assert await store.page(SHARD, FAR, 3, (-1, -1), 10) == []
    assert await store.tasks(SHARD, []) == []
    assert await store.tasks(SHARD, ["acme/none"]) == []
    assert await store.filings(SHARD, []) == []
    assert await store.filings(SHARD, [(START, 0, 1)]) == []
    assert await store.dead_letters(SHARD, "", 10) == []
    assert await store.letters(SHARD, []) == []
    assert await store.closing(SHARD, START) is None
    await store.write(SHARD, 5, [])


async def test_a_page_ends_early_only_at_the_end_behind_a_desert_of_dropped_rows(store: Store) -> None:
    base = START * 60_000
    dead = [row(n, due_ms=base + n) for n in range(3_000)]
    alive = [row(n, due_ms=base + n) for n in range(3_000, 3_010)]
    await store.write(SHARD, 5, dead)
    await store.drop(SHARD, START, 1, 5)
    await store.write(SHARD, 6, alive)
    assert await store.page(SHARD, START, 0, (-1, -1), 1_000) == alive
    assert await whole_bucket(store, START, limit=4) == alive


async def test_thousands_of_keys_are_looked_up_at_once(store: Store) -> None:
    rows = [task(f"acme/{n}", filing=n) for n in range(3_000)]
    await store.write(SHARD, 5, rows)
    asked = [f"acme/{n}" for n in range(0, 9_000, 2)]
    found = await store.tasks(SHARD, asked)
    assert sorted(found, key=lambda row: row.filing) == rows[::2]


async def test_filings_are_found_in_whichever_piece_they_stand(store: Store) -> None:
    rows = [row(1), row(2, piece=4), row(3, minute=START + 1, piece=1), row(4, minute=START + 2)]
    await store.write(SHARD, 5, rows)
    places = [(r.minute, r.due_ms, r.filing) for r in rows]
    places += [(START, START * 60_000, 99), (START, START * 60_000 + 1, 1), (FAR, FAR * 60_000, 1)]
    found = await store.filings(SHARD, places)
    assert sorted(found, key=lambda row: row.filing) == rows


async def test_a_filing_that_stands_in_two_pieces_is_found_in_both(store: Store) -> None:
    """A stale owner's row may stand in another piece than the present owner's."""
    both = [row(1), row(1, piece=1)]
    await store.write(SHARD, 5, both)
    found = await store.filings(SHARD, [(START, START * 60_000, 1)])
    assert sorted(found, key=lambda row: row.piece) == both


# Letters, closing records, queues


async def test_letters_are_listed_by_key_until_they_are_settled(store: Store) -> None:
    await store.write(SHARD, 5, [letter(f"acme/{n}") for n in range(5)])
    await store.write(SHARD, 6, [letter("acme/2", record=b"")])
    assert [found.key for found in await store.dead_letters(SHARD, "", 2)] == ["acme/0", "acme/1"]
    assert await store.dead_letters(SHARD, "acme/1", 9) == [letter("acme/3"), letter("acme/4")]
    assert await store.letters(SHARD, ["acme/2", "acme/3", "acme/9"]) == [letter("acme/3")]
    await store.write(SHARD, 7, [letter("acme/2", attempts=9)])
    assert await store.letters(SHARD, ["acme/2"]) == [letter("acme/2", attempts=9)]


async def test_a_closing_record_is_kept(store: Store) -> None:
    closing = Closing(START, 94_000, 90_000, 4_000, 12, (1 << 64) - 1)
    await store.put_closing(SHARD, closing)
    await store.put_closing(SHARD, closing)
    assert await store.closing(SHARD, START) == closing
    assert await store.closing(SHARD, START + 1) is None
    assert await store.closing(SHARD + 1, START) is None


async def test_queues_are_declared_and_changed(catalog: Catalog) -> None:
    assert await catalog.queues() == []
    await catalog.put_queue(Queue("mail"))
    await catalog.put_queue(Queue("audit", "none", "settled at once"))
    await catalog.put_queue(Queue("mail", note="changed"))
    assert await catalog.queues() == [Queue("audit", "none", "settled at once"), Queue("mail", note="changed")]


# Plain writes in any order, against a dictionary with timestamps

timestamps = st.integers(1, 6)
minutes = st.integers(START, START + 1)
pieces = st.integers(0, 1)
dues = st.integers(0, 2)
numbers = st.integers(0, 3)


class PlainWrites(RuleBasedStateMachine):
    """The content of a write follows from its timestamp, so equal timestamps are equal contents."""

    def __init__(self, twin: Twin) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.resources = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.store: Store = self.run(self.resources.enter_async_context(twin.open(Path(self.folder.name))))
        self.run(self.store.set_up(START, STARTS))
        self.rows: dict[tuple[int, int, int, int], int] = {}
        self.dropped: dict[tuple[int, int], int] = {}
        self.tasks: dict[str, int] = {}
        self.letters: dict[str, int] = {}

    def run(self, waiting: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(waiting)

    def teardown(self) -> None:
        self.run(self.resources.aclose())
        self.runner.close()
        self.folder.cleanup()

    @staticmethod
    def row(place: tuple[int, int, int, int], timestamp: int) -> BucketRow:
        return BucketRow(*place, b"%d" % timestamp)

    @staticmethod
    def letter(key: str, timestamp: int) -> DeadLetter:
        """Odd ones are settled."""
        return letter(key, record=b"" if timestamp % 2 else b"%d" % timestamp)

    @rule(timestamp=timestamps, places=st.lists(st.tuples(minutes, pieces, dues, numbers), max_size=4))
    def write_rows(self, timestamp: int, places: list[tuple[int, int, int, int]]) -> None:
        self.run(self.store.write(SHARD, timestamp, [self.row(place, timestamp) for place in places]))
        for place in places:
            self.rows[place] = max(self.rows.get(place, 0), timestamp)

    @rule(timestamp=timestamps, minute=minutes, count=st.integers(1, 2))
    def drop(self, timestamp: int, minute: int, count: int) -> None:
        self.run(self.store.drop(SHARD, minute, count, timestamp))
        for piece in range(count):
            self.dropped[minute, piece] = max(self.dropped.get((minute, piece), 0), timestamp)

    @rule(timestamp=timestamps, names=st.lists(numbers, max_size=3))
    def write_tasks(self, timestamp: int, names: list[int]) -> None:
        keys = [f"acme/{name}" for name in names]
        self.run(self.store.write(SHARD, timestamp, [task(key, filing=timestamp) for key in keys]))
        for key in keys:
            self.tasks[key] = max(self.tasks.get(key, 0), timestamp)

    @rule(timestamp=timestamps, name=numbers)
    def write_letter(self, timestamp: int, name: int) -> None:
        key = f"acme/{name}"
        self.run(self.store.write(SHARD, timestamp, [self.letter(key, timestamp)]))
        self.letters[key] = max(self.letters.get(key, 0), timestamp)

    def visible(self, minute: int, piece: int) -> list[BucketRow]:
        drop = self.dropped.get((minute, piece), 0)
        places = sorted(place for place in self.rows if place[:2] == (minute, piece))
        return [self.row(place, self.rows[place]) for place in places if self.rows[place] > drop]

    @invariant()
    def buckets_agree(self) -> None:
        for minute in (START, START + 1):
            both = []
            for piece in (0, 1):
                expected = self.visible(minute, piece)
                both += expected
                assert self.run(whole_bucket(self.store, minute, piece, limit=2)) == expected
            places = [(minute, due, number) for due in range(3) for number in range(4)]
            found = self.run(self.store.filings(SHARD, places))
            assert sorted(found, key=lambda r: (r.piece, r.due_ms, r.filing)) == both

    @invariant()
    def keys_agree(self) -> None:
        keys = [f"acme/{name}" for name in range(4)]
        found = sorted(self.run(self.store.tasks(SHARD, keys)), key=lambda row: row.key)
        assert found == [task(key, filing=self.tasks[key]) for key in sorted(self.tasks)]
        listed = [self.letter(key, self.letters[key]) for key in sorted(self.letters)]
        assert self.run(self.store.dead_letters(SHARD, "", 9)) == [one for one in listed if one.record]


def test_plain_writes_in_any_order_end_as_their_timestamps_say(twin: Twin) -> None:
    run_state_machine_as_test(
        lambda: PlainWrites(twin),
        settings=settings(
            max_examples=twin.histories,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
