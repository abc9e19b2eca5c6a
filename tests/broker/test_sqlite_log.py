import sqlite3
from collections.abc import AsyncIterator

import pytest
from minutewheel.broker import sqlite_log
from minutewheel.broker.errors import BrokerError, OffsetGone
from minutewheel.broker.port import Produced
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message
from minutewheel.store.sqlite_connection import at_once


class Clock:
    now_ms = 1_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def broker(clock: Clock) -> AsyncIterator[SqliteBroker]:
    opened = await SqliteBroker.open(":memory:", at_once, clock)
    await opened.create_topics({"t": 2, "u": 1})
    yield opened
    await opened.close()


async def produce(broker: SqliteBroker, topic: str, partition: int, *values: bytes) -> list[Produced]:
    answers = await broker.produce([Message(topic, None, value, (), partition) for value in values])
    return [answer for answer in answers if isinstance(answer, Produced)]


async def test_offsets_are_dense_and_time_never_goes_back_in_a_partition(broker: SqliteBroker, clock: Clock) -> None:
    first = await produce(broker, "t", 0, b"1", b"2")
    clock.now_ms = 400
    second = await produce(broker, "t", 0, b"3")
    other = await produce(broker, "t", 1, b"4")
    assert [(answer.offset, answer.time_ms) for answer in first + second] == [(0, 1_000), (1, 1_000), (2, 1_000)]
    assert [(answer.offset, answer.time_ms) for answer in other] == [(0, 400)]


async def test_retention_deletes_the_old_and_moves_the_start(broker: SqliteBroker, clock: Clock) -> None:
    await produce(broker, "t", 0, b"1", b"2")
    await produce(broker, "u", 0, b"other")
    clock.now_ms = 2_000
    await produce(broker, "t", 0, b"3")
    assert await broker.trim("t", 2_000) == 2
    (bounds,) = await broker.bounds("t", [0])
    assert (bounds.start, bounds.end) == (2, 3)
    with pytest.raises(OffsetGone):
        await broker.fetch("t", 0, 1, 10, 0)
    assert [record.value for record in (await broker.fetch("t", 0, 2, 10, 0)).records] == [b"3"]
    assert await broker.trim("t", 9_000) == 1
    assert (await broker.fetch("t", 0, 3, 10, 0)).next_offset == 3
    assert [answer.offset for answer in await produce(broker, "t", 0, b"4")] == [3]
    assert (await broker.bounds("u", [0]))[0].start == 0


async def test_retention_goes_in_small_steps(
    broker: SqliteBroker, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "ROWS_A_TRIM", 3)
    await produce(broker, "t", 1, *(b"%d" % n for n in range(10)))
    clock.now_ms += 1
    await produce(broker, "t", 1, b"new")
    assert await broker.trim("t", clock.now_ms) == 10
    assert (await broker.bounds("t", [1]))[0].start == 10


async def test_a_group_reads_on_behind_what_retention_took(broker: SqliteBroker, clock: Clock) -> None:
    member = await broker.join("workers", ["t"], "m")
    await produce(broker, "t", 0, b"1", b"2")
    clock.now_ms = 2_000
    await produce(broker, "t", 0, b"3")
    await broker.trim("t", 2_000)
    assert [record.value for record in await member.poll(10, 0)] == [b"3"]


async def test_a_full_disk_refuses_the_whole_batch_and_harms_nothing(broker: SqliteBroker) -> None:
    await produce(broker, "t", 0, b"before")
    db: sqlite3.Connection = broker._file._connection._db
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages + 2}")
    large = [Message("t", None, b"x" * 3_000, (), n % 2) for n in range(50)]
    answers = await broker.produce(large)
    assert [type(answer) for answer in answers] == [BrokerError] * 50
    db.execute("PRAGMA max_page_count = 100000")
    assert (await broker.bounds("t", [0, 1]))[1].end == 0
    assert [answer.offset for answer in await produce(broker, "t", 0, b"after")] == [1]
    records = (await broker.fetch("t", 0, 0, 10, 0)).records
    assert [record.value for record in records] == [b"before", b"after"]


async def test_a_fetch_is_bounded_in_bytes_too(broker: SqliteBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_log, "BYTES_A_FETCH", 2_500)
    await produce(broker, "t", 0, *[b"x" * 1_000] * 10)
    assert len((await broker.fetch("t", 0, 0, 10, 0)).records) == 3
    monkeypatch.setattr(sqlite_log, "BYTES_A_FETCH", 10)
    assert len((await broker.fetch("t", 0, 0, 10, 0)).records) == 1


async def test_a_change_holds_a_bounded_number_of_records(
    broker: SqliteBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "RECORDS_A_CHANGE", 2)
    parcels = [sqlite_log.Parcel([(Message("t", None, b"%d" % n, (), 0), None)]) for n in range(7)]
    broker._logs.parcels.extend(parcels)
    broker._logs.flush(parcels[0])
    assert [parcel.answers is not None for parcel in parcels] == [True, True, False, False, False, False, False]
    broker._logs.flush(parcels[6])
    assert all(parcel.answers is not None for parcel in parcels)
