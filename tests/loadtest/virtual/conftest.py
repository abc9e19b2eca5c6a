"""A dispatcher's day, part after part, in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from minutewheel.loadtest.virtual.accounts import Tally
from minutewheel.loadtest.virtual.parts import Plan, Played, play_part, played_so_far

Whole = Callable[[Plan, Path], Played]
TallyOf = Callable[[Played], Tally]


@pytest.fixture
def whole() -> Whole:
    """Plays what is left of the first dispatcher's day."""

    def play(plan: Plan, folder: Path) -> Played:
        folder.mkdir(exist_ok=True)
        played = played_so_far(plan, 0, folder)
        while played.parts < plan.parts:
            played = play_part(plan, 0, folder, lambda _: True)
        return played

    return play


@pytest.fixture
def tally_of() -> TallyOf:
    """What all minutes of it come to."""

    def sum_up(played: Played) -> Tally:
        tally = Tally()
        for minute in played.minutes.values():
            tally.add(minute)
        return tally

    return sum_up
