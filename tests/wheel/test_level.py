from array import array

import pytest
from minutewheel.wheel.level import LEVEL_COUNT, SLOT_BITS, TICK_MAX, Level, level_for, slot_for
from minutewheel.wheel.run import INTEGERS, Run

pytestmark = pytest.mark.pure

YEAR_9999_MS = 253_402_300_799_999


def run_at(due_ms: int) -> Run:
    return Run(0, array(INTEGERS, [due_ms]), array(INTEGERS, [1]), [b"x"])


def test_the_level_is_that_of_the_highest_digit_that_differs() -> None:
    for level in range(LEVEL_COUNT):
        width = 1 << SLOT_BITS * level
        for slot in range(1, 64):
            first = slot * width
            for tick in (first, first + width // 2, first + width - 1):
                assert level_for(0, tick) == level
                assert slot_for(level, tick) == slot


def test_a_wheel_in_the_middle_of_a_slot_counts_from_the_slots_own_borders() -> None:
    assert level_for(63, 64) == 1
    assert level_for(64, 127) == 0
    assert level_for(127, 128) == 1
    assert level_for(4095, 4096) == 2
    assert level_for(8_000, 8_010) == 0
    assert level_for(8_000, 8_100) == 1
    assert level_for(8_000, 9_000) == 2


def test_the_levels_reach_beyond_the_year_9999_even_at_ticks_of_one_millisecond() -> None:
    assert TICK_MAX > YEAR_9999_MS
    assert level_for(0, YEAR_9999_MS) < LEVEL_COUNT


@pytest.mark.parametrize("number", range(LEVEL_COUNT))
def test_slots_are_taken_in_the_order_of_their_ticks(number: int) -> None:
    level = Level(number)
    width = 1 << SLOT_BITS * number
    runs = {slot: run_at(slot) for slot in (63, 1, 17, 62)}
    starts = {slot: level.put(slot * width + width - 1, run) for slot, run in runs.items()}
    assert starts == {slot: slot * width for slot in runs}
    for slot in sorted(runs):
        assert level.first_tick(0) == slot * width
        assert level.first_runs() == [runs[slot]]
        assert level.take_first() == [runs[slot]]
    assert level.occupied == 0


def test_the_first_tick_lies_on_the_present_turn_of_the_level() -> None:
    level = Level(1)
    assert level.put(8_100, run_at(8_100)) == 8_064
    assert level.first_tick(8_000) == 8_064


def test_a_slot_is_free_only_when_its_last_run_is_discarded() -> None:
    level = Level(0)
    one, other = run_at(5), run_at(5)
    level.put(5, one)
    level.put(5, other)
    level.discard(5, one)
    assert level.first_runs() == [other]
    level.discard(5, other)
    assert level.occupied == 0
