"""Does the store of a played day answer as a store must, although it makes its rows when they are read?"""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.dispatcher.effects import Claim, Drop, ReadPage, Record, Write
from minutewheel.loadtest.profile import Profile
from minutewheel.loadtest.virtual.player import Track
from minutewheel.loadtest.virtual.rows import FILERS_FENCE
from minutewheel.store.errors import ClaimRefused
from minutewheel.store.position import Log, filing_number, pack_position
from minutewheel.store.progress import Checkpoint, NewMarks
from minutewheel.store.record import with_fence
from minutewheel.store.task import MINUTE_MS, BucketRow
from msgspec.structs import replace

pytestmark = pytest.mark.pure

MIDNIGHT_MS = 29_846_880 * MINUTE_MS
SHARD = 11
NUMBER = 541


def track(tasks: int = 20_000_000) -> Track:
    return Track(Profile("day", tasks, 1, MIDNIGHT_MS), SHARD)


MINUTE = track().rows.first + NUMBER


def whole(one: Track, minute: int, limit: int) -> list[BucketRow]:
    """A bucket, page after page."""
    found: list[BucketRow] = []
    after = (-1, -1)
    while True:
        page = one.shelf.page(ReadPage(minute, 0, after, limit))
        found += page
        if len(page) < limit:
            return found
        after = page[-1].due_ms, page[-1].filing


def late(one: Track, number: int, due_ms: int) -> BucketRow:
    record = one.rows.record(MINUTE, number)
    return BucketRow(MINUTE, 0, due_ms, filing_number(Log.OUTCOMES, pack_position(1, number)), with_fence(record, 2))


@given(st.integers(1, 400), st.lists(st.integers(0, MINUTE_MS - 1), max_size=20))
def test_pages_of_any_length_make_up_the_bucket_with_what_was_filed_since(limit: int, offsets: list[int]) -> None:
    one = track()
    kept = [late(one, number, MINUTE * MINUTE_MS + offset) for number, offset in enumerate(offsets)]
    one.shelf.write(Write(2 << 32, kept))
    rows = whole(one, MINUTE, limit)
    points = [(row.due_ms, row.filing) for row in rows]
    assert points == sorted(set(points))
    assert len(rows) == one.profile.of_shard(SHARD, NUMBER) + len(kept)
    assert set(kept) <= set(rows)
    assert rows == whole(one, MINUTE, limit), "the same when it is read again"
    assert one.accounts.of(MINUTE).waiting.count == len(rows), "and counted once"


def test_what_is_dropped_is_forgotten_and_task_rows_a_little_later() -> None:
    one = track()
    one.shelf.know(one.rows.task(one.rows.filing(MINUTE, 0), MINUTE * MINUTE_MS))
    one.shelf.write(Write(2 << 32, [late(one, 0, MINUTE * MINUTE_MS)]))
    one.shelf.drop(Drop(MINUTE, 1, 0))
    assert one.shelf.held() == 1
    for minute in range(MINUTE + 1, MINUTE + 4):
        one.shelf.drop(Drop(minute, 1, 0))
    assert one.shelf.held() == 0


def test_what_is_due_beyond_the_day_is_counted_and_not_kept() -> None:
    one = track()
    far = replace(late(one, 0, 0), minute=MINUTE + 10**6)
    one.shelf.write(Write(2 << 32, [far]))
    assert (one.shelf.held(), one.accounts.waiting()) == (0, 1)


def test_a_claim_needs_a_higher_fence_and_learns_how_far_the_one_before_got() -> None:
    shelf = track().shelf
    before = shelf.progress.offsets
    found = shelf.claim(Claim(2, "a", MINUTE))
    assert (found.fence, found.reigns) == (2, {FILERS_FENCE: before})
    assert shelf.claim(Claim(2, "a", MINUTE)).reigns == found.reigns, "again, as the first time"
    with pytest.raises(ClaimRefused):
        shelf.claim(Claim(2, "b", MINUTE))


def test_progress_is_kept_under_its_fence_alone_and_a_successor_finds_it() -> None:
    one = track()
    shelf = one.shelf
    shelf.claim(Claim(2, "a", MINUTE))
    there = shelf.progress
    checkpoint = Checkpoint(
        number=2 << 32 | 1,
        offsets=there.offsets,
        open_minute=there.open_minute,
        dropped_minute=there.dropped_minute,
        marks=(NewMarks(MINUTE, (5,), (6,)),),
    )
    assert not shelf.record(Record(3, checkpoint))
    assert shelf.record(Record(2, checkpoint))
    found = pickle.loads(pickle.dumps(one)).shelf.claim(Claim(3, "b", MINUTE))
    assert (found.marks[MINUTE].fired, found.marks[MINUTE].removed) == ({5}, {6})
    assert shelf.claim(Claim(3, "b", MINUTE - 1)).marks == {}
