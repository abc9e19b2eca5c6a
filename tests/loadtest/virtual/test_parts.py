"""Does a dispatcher's day that was interrupted go on where it was, and come to the same?"""

from pathlib import Path
from typing import Any

import pytest
from minutewheel.loadtest.day import plan_of
from minutewheel.loadtest.virtual.parts import Interrupted, memory_bytes, parts_in, play_part, played_so_far

pytestmark = pytest.mark.volume


def test_an_interrupted_run_goes_on_and_comes_to_the_same(tmp_path: Path, whole: Any, tally_of: Any) -> None:
    plan = plan_of("day", 200_000, seed=3, parts=3)
    straight = whole(plan, tmp_path / "straight")
    folder = tmp_path / "torn"
    folder.mkdir()
    play_part(plan, 0, folder, lambda _: True)
    assert len(parts_in(folder)) == 1
    with pytest.raises(Interrupted):
        play_part(plan, 0, folder, lambda _: False)
    assert played_so_far(plan, 0, folder).parts == 1
    gone_on = whole(plan, folder)
    assert tally_of(gone_on) == tally_of(straight)
    assert (gone_on.late_ms, gone_on.pace) == (straight.late_ms, straight.pace)


def test_what_a_process_holds_is_known() -> None:
    before = memory_bytes()
    block = b"x" * (64 << 20)
    assert memory_bytes() - before > len(block) // 2
