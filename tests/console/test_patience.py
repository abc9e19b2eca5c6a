from collections.abc import Awaitable, Callable

import pytest
from minutewheel.broker.errors import BrokerError
from minutewheel.console.patience import PatientReads, patiently
from minutewheel.coordinator.errors import CoordinatorUnavailable
from minutewheel.store.errors import NoSchema, NotApplied, StoreError
from minutewheel.store.minutes import Reads, rows_of
from minutewheel.store.progress import Closing, Marks, Progress
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.task import SHARDS, BucketRow

NO_PAUSE = (0.0, 0.0)


def failing(errors: list[Exception]) -> Callable[[], Awaitable[str]]:
    """It raises these in turn, and answers then."""

    async def ask() -> str:
        if errors:
            raise errors.pop(0)
        return "answer"

    return ask


@pytest.mark.parametrize("error", [NotApplied, BrokerError, CoordinatorUnavailable])
async def test_what_stumbles_is_asked_again(error: type[Exception]) -> None:
    assert await patiently(failing([error("busy")]), NO_PAUSE) == "answer"


async def test_after_the_last_pause_the_error_is_told() -> None:
    with pytest.raises(NotApplied, match="third"):
        await patiently(failing([NotApplied("first"), NotApplied("second"), NotApplied("third")]), NO_PAUSE)


@pytest.mark.parametrize("final", [NoSchema("here"), StoreError("no"), ValueError("no")])
async def test_what_fails_for_good_is_told_at_once(final: Exception) -> None:
    with pytest.raises(type(final)):
        await patiently(failing([final]), NO_PAUSE)


class Stumbling(Reads):
    """A store of which each read fails once, and is right then."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.failed: set[object] = set()

    def _stumble(self, *question: object) -> None:
        if question not in self.failed:
            self.failed.add(question)
            raise NotApplied("timed out")

    async def progress(self, shard: int, marks_up_to: int) -> Progress:
        self._stumble("progress", shard)
        return await self.store.progress(shard, marks_up_to)

    async def marks(self, shard: int, minutes: list[int]) -> dict[int, Marks]:
        self._stumble("marks", shard)
        return await self.store.marks(shard, minutes)

    async def page(self, shard: int, minute: int, piece: int, after: tuple[int, int], limit: int) -> list[BucketRow]:
        self._stumble("page", shard, after)
        return await self.store.page(shard, minute, piece, after, limit)

    async def closing(self, shard: int, minute: int) -> Closing | None:
        self._stumble("closing", shard)
        return await self.store.closing(shard, minute)


async def test_a_whole_listing_survives_each_read_failing_once() -> None:
    store = await SqliteStore.open(":memory:", at_once, synchronous="OFF")
    await store.set_up(100, [(0, 0, 0)] * SHARDS)
    stumbling = Stumbling(store)
    reads = PatientReads(stumbling, NO_PAUSE)
    assert [row async for row in rows_of(reads, [100])] == []
    assert await reads.closing(3, 99) is None
    assert len(stumbling.failed) == 3 * SHARDS + 1
    await store.close()
