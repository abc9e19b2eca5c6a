import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.minutes import audit_of, is_closed, rows_of
from minutewheel.store.progress import Checkpoint, Closing, NewMarks, Progress
from minutewheel.store.record import NO_HEADERS, Filed, pack
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.task import SHARDS, BucketRow

MINUTE = 100
LATER_MS = (MINUTE + 1) * 60_000


def row(filing: int, piece: int = 0) -> BucketRow:
    record = pack(Filed(1, filing, 1, 2, 0, f"acme/t{filing}", "mail", b"\x80", NO_HEADERS, b"{}"))
    return BucketRow(MINUTE, piece, MINUTE * 60_000 - filing, filing, record)


async def filled(rows: dict[int, list[int]], fired: set[int], removed: set[int], closed: set[int]) -> SqliteStore:
    """A store with these filings by shard; those shards are closed in which it says so."""
    store = await SqliteStore.open(":memory:", at_once, synchronous="OFF")
    await store.set_up(MINUTE, [(0, 0, 0)] * SHARDS)
    for shard, filings in rows.items():
        await store.claim(shard, 1, "m", MINUTE)
        await store.write(shard, 1 << 32, [row(filing) for filing in filings])
        marks = NewMarks(MINUTE, tuple(fired & set(filings)), tuple(removed & set(filings)))
        minutes = (MINUTE,) if shard in closed else ()
        await store.record(shard, 1, Checkpoint(1 << 32, (0, 0, 0), MINUTE, MINUTE, (marks,), minutes))
    return store


numbers = st.sets(st.integers(0, 30))


@given(st.dictionaries(st.integers(0, SHARDS - 1), numbers, max_size=4), numbers, numbers)
async def test_waiting_is_rows_less_marks(rows: dict[int, set[int]], fired: set[int], removed: set[int]) -> None:
    removed -= fired
    store = await filled({shard: sorted(filings) for shard, filings in rows.items()}, fired, removed, set())
    found = [(one.shard, int(one.filing), one.state) async for one in rows_of(store, [MINUTE - 1, MINUTE])]
    expected = {
        (shard, filing, "fired" if filing in fired else "removed" if filing in removed else "waiting")
        for shard, filings in rows.items()
        for filing in filings
    }
    assert sorted(found) == sorted(expected)
    for now_ms in (LATER_MS - 1, LATER_MS):
        audit = await audit_of(store, MINUTE, now_ms)
        left = {(shard, filing) for shard, filing, state in expected if state == "waiting"}
        assert audit.rows == len(expected) == audit.fired + audit.removed + len(left)
        assert {(one.shard, int(one.filing)) for one in audit.missing} == (left if now_ms == LATER_MS else set())
        assert audit.waiting == (0 if now_ms == LATER_MS else len(left))
    await store.close()


async def test_after_the_close_the_closing_records_speak() -> None:
    store = await filled({1: [1, 2], 2: [3]}, {1, 3}, {2}, closed={1, 2})
    await store.put_closing(1, Closing(MINUTE, 2, 1, 1, 1, 0))
    audit = await audit_of(store, MINUTE, LATER_MS)
    assert (audit.state, audit.closed_shards, audit.unrecorded_shards) == ("partly closed", 2, 1)
    assert (audit.rows, audit.fired, audit.removed, audit.late, audit.missing) == (2, 1, 1, 1, [])
    assert [one async for one in rows_of(store, [MINUTE])] == []
    assert (await audit_of(store, MINUTE - 1, LATER_MS)).state == "closed"
    assert (await audit_of(store, MINUTE + 1, LATER_MS)).state == "open"
    await store.close()


@pytest.mark.parametrize(("minute", "closed"), [(9, True), (10, False), (11, True), (12, False)])
def test_closed_is_below_the_open_minute_or_named(minute: int, closed: bool) -> None:
    progress = Progress(0, 1, "m", 10, 10, (0, 0, 0), closed={11})
    assert is_closed(progress, minute) is closed
