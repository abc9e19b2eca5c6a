"""Are the rows that are made when they are read such as the product would have filed?"""

import pytest
from minutewheel.dispatcher.effects import LookUp, ReadFilings, ReadPage
from minutewheel.loadtest.profile import BIG_TENANT, NINE, Profile
from minutewheel.loadtest.virtual.player import Track
from minutewheel.loadtest.virtual.rows import FILERS_FENCE, KEY, RETRY, Rows
from minutewheel.store.record import decode_options, unpack
from minutewheel.store.task import MINUTE_MS

pytestmark = pytest.mark.pure

MIDNIGHT_MS = 29_846_880 * MINUTE_MS
SHARD = 11
MINUTE = 29_846_880 + NINE + 1


def test_rows_are_records_as_the_product_makes_them() -> None:
    one = Track(Profile("day", 20_000_000, 1, MIDNIGHT_MS), SHARD)
    row = one.shelf.page(ReadPage(MINUTE, 0, (-1, -1), 5_000))[17]
    filed = unpack(row.record)
    assert filed.key.encode() == row.record[KEY]
    assert (filed.fence, filed.attempt, filed.queue) == (FILERS_FENCE, 1, "load")
    assert decode_options(filed.options).retry == RETRY
    assert one.rows.made(row.filing)
    assert (one.rows.minute(row.filing), one.rows.place(row.filing)) == (MINUTE, 17)
    assert one.shelf.filings(ReadFilings([(MINUTE, row.due_ms, row.filing)])) == [row]
    task = one.rows.task(row.filing, row.due_ms)
    assert (task.key, task.filing, task.minute) == (filed.key, row.filing, MINUTE)
    one.shelf.know(task)
    assert one.shelf.look_up(LookUp([filed.key, "t0000/none"])) == [task]


@pytest.mark.parametrize("name", ["campaign", "soak"])
def test_ids_are_all_different_late_ones_too(name: str) -> None:
    rows = Rows(Profile(name, 10**8, 1, MIDNIGHT_MS), SHARD)  # type: ignore[arg-type]
    keys = []
    for minute in (MINUTE - 1, MINUTE):
        keys += [record[KEY] for record in rows.records(minute, 0, rows.count(minute))]
        keys += [rows.late(minute, place)[0].encode() for place in range(100)]
    assert len(set(keys)) == len(keys) > 1_000
    assert {len(key) for key in keys} == {KEY.stop - KEY.start}


def test_the_campaign_stands_in_front_and_the_rest_behind_it() -> None:
    profile = Profile("campaign", 10**7, 1, MIDNIGHT_MS)
    rows, big = Rows(profile, SHARD), profile.campaign(SHARD, NINE)
    tenants = [record[KEY].split(b"/")[0] for record in rows.records(MINUTE - 1, big - 5, big + 5)]
    assert tenants[:5] == [BIG_TENANT.encode()] * 5
    assert BIG_TENANT.encode() not in tenants[5:]
    assert rows.records(MINUTE - 1, 3, 4) == [rows.record(MINUTE - 1, 3)]
