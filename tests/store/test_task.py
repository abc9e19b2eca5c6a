import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.position import NO_POSITION, POSITION_BITS
from minutewheel.store.task import MINUTE_MS, BucketRow, DeadLetter, TaskRow, minute_of

pytestmark = pytest.mark.pure

LAST_MS = 253_402_300_799_999
"""9999-12-31T23:59:59.999Z."""


@given(st.integers(0, LAST_MS))
def test_a_time_lies_in_its_minute(time_ms: int) -> None:
    minute = minute_of(time_ms)
    assert minute * MINUTE_MS <= time_ms < (minute + 1) * MINUTE_MS


def test_the_last_minute_needs_more_than_32_bits() -> None:
    assert minute_of(LAST_MS) == 4_223_371_679


def test_minutes_change_on_the_minute() -> None:
    assert [minute_of(time_ms) for time_ms in (59_999, 60_000, 119_999, 120_000)] == [0, 1, 1, 2]


@pytest.mark.parametrize("row", [TaskRow, BucketRow, DeadLetter])
def test_rows_are_values(row: type) -> None:
    assert row.__struct_config__.frozen
    assert row.__struct_config__.eq


def test_a_new_row_stands_below_every_record() -> None:
    row = TaskRow("acme/1", 1, 1, 0, 0, "scheduled", 1, "mail", b"")
    assert {row.submit_pos, row.forwarded_pos, row.outcome_pos, row.forward_origin} == {NO_POSITION}


@given(st.integers(0, 63), st.integers(0, (1 << POSITION_BITS) - 1))
def test_a_forward_origin_fills_two_columns_and_comes_back(partition: int, position: int) -> None:
    for origin in (partition << POSITION_BITS | position, NO_POSITION):
        high, low = divmod(origin, 1 << POSITION_BITS)
        assert -1 <= high <= 63
        assert 0 <= low < 1 << POSITION_BITS
        assert high << POSITION_BITS | low == origin
