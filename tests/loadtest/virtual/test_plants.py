"""Is a fault found that was put in on purpose?"""

from pathlib import Path
from typing import Any

import pytest
from minutewheel.loadtest.day import plan_of
from minutewheel.loadtest.virtual.plants import Plant

pytestmark = pytest.mark.volume

SOME = 60_000


@pytest.mark.parametrize(("plant", "found"), [("loss", "lost"), ("duplicate", "duplicated"), ("early", "early")])
def test_a_planted_fault_is_found(plant: Plant, found: str, tmp_path: Path, whole: Any, tally_of: Any) -> None:
    plan = plan_of("steady", SOME, seed=2, parts=1, plant=plant)
    tally = tally_of(whole(plan, tmp_path))
    assert getattr(tally, found) == 1
    assert not tally.proven
    assert tally_of(whole(plan_of("steady", SOME, seed=2, parts=1), tmp_path / "sound")).proven
