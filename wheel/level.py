"""Which slot does a tick belong to, and which slot comes next?

Every level has 64 slots; a slot of level *n* is 64ⁿ ticks wide. A tick ahead of the wheel belongs to the level of the
highest group of six bits in which it differs from the tick at which the wheel stands. Three things follow:

- Everything on a level lies in the same slot of the level above in which the wheel stands. So all of it comes before
  anything on a higher level, and slots never wrap: the lowest occupied bit of the lowest occupied level is next.
- While the wheel moves towards a slot but not into it, the slot of a tick stays the same: what was put by this
  arithmetic is found by it again.
- When the wheel moves into a slot of level *n*, all that stands there belongs to levels below *n* from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .run import Run

SLOT_BITS = 6
SLOT_MASK = (1 << SLOT_BITS) - 1
LEVEL_COUNT = 8
TICK_MAX = (1 << SLOT_BITS * LEVEL_COUNT) - 1


def level_for(wheel_tick: int, tick: int) -> int:
    """The level of a tick that is later than the wheel's."""
    return ((wheel_tick ^ tick).bit_length() - 1) // SLOT_BITS


def slot_for(level: int, tick: int) -> int:
    return tick >> SLOT_BITS * level & SLOT_MASK


class Level:
    """64 slots of runs, with one bit for each that is occupied."""

    __slots__ = ("number", "occupied", "shift", "slots")

    def __init__(self, number: int) -> None:
        self.number = number
        self.shift = SLOT_BITS * number
        self.occupied = 0
        self.slots: dict[int, list[Run]] = {}

    def put(self, tick: int, run: Run) -> int:
        """Put a run in the slot of a tick, and return the first tick of that slot."""
        turn = tick >> self.shift
        slot = turn & SLOT_MASK
        if self.occupied >> slot & 1:
            self.slots[slot].append(run)
        else:
            self.slots[slot] = [run]
            self.occupied |= 1 << slot
        return turn << self.shift

    def discard(self, tick: int, run: Run) -> None:
        slot = slot_for(self.number, tick)
        self.slots[slot].remove(run)
        if not self.slots[slot]:
            del self.slots[slot]
            self.occupied ^= 1 << slot

    def first_tick(self, wheel_tick: int) -> int:
        """The first tick of the earliest occupied slot; there must be one."""
        turn = wheel_tick >> self.shift >> SLOT_BITS << SLOT_BITS | self._first_slot()
        return turn << self.shift

    def first_runs(self) -> list[Run]:
        """What stands in the earliest occupied slot."""
        return self.slots[self._first_slot()]

    def take_first(self) -> list[Run]:
        """Empty the earliest occupied slot and return its runs."""
        slot = self._first_slot()
        self.occupied ^= 1 << slot
        return self.slots.pop(slot)

    def _first_slot(self) -> int:
        return (self.occupied & -self.occupied).bit_length() - 1
