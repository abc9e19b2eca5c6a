import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.position import (
    INCARNATION_LIMIT,
    INDEX_LIMIT,
    NO_POSITION,
    OFFSET_LIMIT,
    Log,
    filing_number,
    log_of,
    pack_position,
    position_of,
    unpack_position,
    write_timestamp,
)

pytestmark = pytest.mark.pure

places = st.tuples(
    st.integers(0, INCARNATION_LIMIT - 1), st.integers(0, OFFSET_LIMIT - 1), st.integers(0, INDEX_LIMIT - 1)
)
logs = st.sampled_from(Log)
fences = st.integers(1, (1 << 31) - 1)
counts = st.integers(0, (1 << 31) - 1)


@given(places)
def test_a_position_comes_apart_as_it_was_put_together(place: tuple[int, int, int]) -> None:
    assert unpack_position(pack_position(*place)) == place


@given(places, places)
def test_positions_compare_as_the_records_stand_in_the_log(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    assert (pack_position(*one) < pack_position(*other)) == (one < other)
    assert pack_position(*one) > NO_POSITION


@pytest.mark.parametrize(
    "place",
    [
        (INCARNATION_LIMIT, 0, 0),
        (0, OFFSET_LIMIT, 0),
        (0, 0, INDEX_LIMIT),
        (-1, 0, 0),
        (0, -1, 0),
        (0, 0, -1),
    ],
)
def test_what_does_not_fit_has_no_position(place: tuple[int, int, int]) -> None:
    with pytest.raises(OverflowError):
        pack_position(*place)


@given(logs, places)
def test_a_filing_tells_its_log_and_position_and_is_one_signed_bigint(log: Log, place: tuple[int, int, int]) -> None:
    position = pack_position(*place)
    filing = filing_number(log, position)
    assert (log_of(filing), position_of(filing)) == (log, position)
    assert 0 <= filing < 1 << 63


@given(logs, places, logs, places)
def test_no_two_records_cause_one_filing(
    log: Log, place: tuple[int, int, int], other_log: Log, other: tuple[int, int, int]
) -> None:
    same = filing_number(log, pack_position(*place)) == filing_number(other_log, pack_position(*other))
    assert same == ((log, place) == (other_log, other))


@given(fences, counts, fences, counts)
def test_a_stale_owner_never_outranks_its_successor(fence: int, count: int, other: int, other_count: int) -> None:
    one, two = write_timestamp(fence, count), write_timestamp(other, other_count)
    assert (one < two) == ((fence, count) < (other, other_count))
    assert 1 << 32 <= one < 1 << 63


@pytest.mark.parametrize(("fence", "count"), [(0, 0), (1 << 31, 0), (1, -1), (1, 1 << 31)])
def test_a_timestamp_has_its_limits(fence: int, count: int) -> None:
    with pytest.raises(AssertionError):
        write_timestamp(fence, count)
