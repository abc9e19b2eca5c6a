"""Is a log of values read as a log of records is, and kept until a checkpoint has passed?"""

import pytest
from minutewheel.broker.command import Cancel, Standing
from minutewheel.loadtest.virtual.log import VirtualLog
from minutewheel.loadtest.virtual.rows import INCARNATION
from minutewheel.store.position import Log, pack_position

pytestmark = pytest.mark.pure

FIRST = 100


def log_of(records: int) -> VirtualLog:
    log = VirtualLog(Log.SUBMIT, 5, FIRST)
    for number in range(records):
        log.append(1_000 + number, lambda at, key=f"a/{number}": Cancel(at=Standing(0, at, 0), key=key))  # type: ignore[misc]
    return log


def test_records_stand_one_after_the_other_with_their_times() -> None:
    log = log_of(5)
    fetched = log.fetch(FIRST + 1, 3)
    assert [record.offset for record in fetched.records] == [FIRST + 1, FIRST + 2, FIRST + 3]
    assert (fetched.next_offset, fetched.end_offset) == (FIRST + 4, FIRST + 5)
    items = [log.item(record) for record in fetched.records]
    assert [(item.key, item.time_ms) for item in items] == [("a/1", 1_001), ("a/2", 1_002), ("a/3", 1_003)]
    assert [item.what.at.position for item in items] == [item.position for item in items]  # type: ignore[union-attr]
    assert log.end == pack_position(INCARNATION, FIRST + 5)
    assert not log.fetch(FIRST + 5, 10).records


def test_what_is_trimmed_is_gone_and_the_rest_stands_where_it_stood() -> None:
    log = log_of(5)
    log.trim(pack_position(INCARNATION, FIRST + 2))
    assert [record.time_ms for record in log.fetch(FIRST + 2, 10).records] == [1_002, 1_003, 1_004]
    log.trim(pack_position(INCARNATION, FIRST + 9))
    assert log.end == pack_position(INCARNATION, FIRST + 5)
