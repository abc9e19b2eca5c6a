import os
from pathlib import Path

import pytest
from minutewheel.loadtest.usage import Usage, Used, used

TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, state: str = "S") -> None:
    folder = proc / "7"
    folder.mkdir(exist_ok=True)
    before, after = " ".join(["0"] * 10), " ".join(["0"] * 30)
    (folder / "stat").write_text(f"7 (odd) name) {state} {before} {3 * TICKS} {2 * TICKS} {after}")
    (folder / "statm").write_text("900 256 3 4 5 6 7")


def test_what_a_process_uses_is_read_whatever_its_name(tmp_path: Path) -> None:
    process(tmp_path)
    found = used(7, tmp_path)
    assert found is not None
    assert (found.cpu_s, found.memory_bytes) == (5.0, 256 * os.sysconf("SC_PAGE_SIZE"))


def test_nothing_is_known_of_what_has_ended_or_where_there_is_no_proc(tmp_path: Path) -> None:
    process(tmp_path, "Z")
    assert used(7, tmp_path) is None
    assert used(8, tmp_path) is None
    assert used(7, tmp_path / "nowhere") is None


def test_between_two_looks_lies_what_was_used() -> None:
    usage = Usage(1_000)
    usage.look(0, {"old": Used(10.0, 2.0, 1 << 20), "gone": None})
    usage.look(1, {"old": Used(11.0, 2.5, 2 << 20)})
    usage.look(2, {"old": Used(12.25, 2.75, 3 << 20), "new": Used(12.25, 0.5, 1 << 20)})
    usage.look(4, {"new": Used(14.25, 1.5, 1 << 20)})
    old, new = usage.processes()
    assert (old.name, old.step_ms) == ("old", 1_000)
    assert old.cpu_percent == (50.0, 20.0, None, None)
    assert old.memory_mib == (2.0, 3.0, None, None)
    assert new.cpu_percent == (None, None, None, None)
    assert new.memory_mib == (None, 1.0, None, 1.0)
    assert usage.cpu_s("old") == pytest.approx(0.75)
    assert usage.cpu_s("new") == pytest.approx(1.5), "from its begin, which was in the run"
    assert usage.cpu_s("gone") == 0


def test_without_looks_there_are_no_processes() -> None:
    usage = Usage(1_000)
    usage.look(0, {"one": None})
    assert usage.processes() == ()
