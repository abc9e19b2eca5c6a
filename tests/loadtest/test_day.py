"""Is a played day proven, does its report say what it must, and does Ctrl-C leave one too?"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest
from minutewheel.loadtest.day import OtherRun, plan_of, run_day, tasks_of
from minutewheel.loadtest.profile import Name

pytestmark = [pytest.mark.volume, pytest.mark.timeout(900)]

COMMAND = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]
SOME = 60_000


@pytest.mark.parametrize("name", get_args(Name))
def test_two_million_of_each_profile_are_proven(name: Name, tmp_path: Path) -> None:
    told: list[int] = []
    plan = plan_of(name, 2_000_000, seed=1)
    report = run_day(plan, tmp_path / "run", 1, lambda _, fired: told.append(fired))
    assert report.complete
    assert report.proven, report.tally
    tally = report.tally
    assert 2_000_000 <= tally.submitted < 2_100_000
    assert tally.submitted + tally.filed == tally.fired + tally.cancelled + tally.moved
    assert min(tally.cancelled, tally.moved, tally.retried, tally.sampled) > 0
    assert bool(report.waiting) == (name == "far-future")
    assert told == sorted(told)
    assert report.checkpoints_per_1000 < 60
    assert report.pace.tasks_most > report.pace.tasks_least
    assert report.pace.checkpoints_most < 130, (
        "they do not grow with the tasks: a minute has 60 s, and 60 for decisions"
    )
    assert report.virtual_lateness_ms["p50"] <= 2 * plan.turn_ms
    assert report.virtual_lateness_ms["p99"] <= 1_000, "even where all shards change hands at nine sharp"
    assert not (tmp_path / "run").exists(), "what was kept is gone when all is played"


def test_a_folder_of_another_run_is_left_alone(tmp_path: Path) -> None:
    plan, file = plan_of("steady", SOME, seed=1, parts=1), tmp_path / "plan.json"
    file.write_text("another")
    with pytest.raises(OtherRun):
        run_day(plan, tmp_path, 1, lambda *_: None)
    assert file.read_text() == "another"


def test_only_what_is_ours_goes_when_all_is_played(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    run_day(plan_of("steady", SOME, seed=1, parts=1), tmp_path, 1, lambda *_: None)
    assert [file.name for file in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("tasks", [1_000, 10**7, 10**9, 5 * 10**9])
def test_a_plan_has_about_as_many_tasks_as_asked_for(tasks: int) -> None:
    plan = plan_of("day", tasks, seed=1)
    assert tasks <= tasks_of(plan) <= tasks + 200_000
    assert plan.fleet_tasks == max(tasks, 10**9)


def test_control_c_leaves_a_report_and_the_same_command_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    command = [*COMMAND, "loadtest", "day", "--virtual", "--tasks", "4e5", "--folder", str(folder), "--json"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    give_up = time.monotonic() + 120
    while not (folder / "dispatcher-00.pickle").exists():
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=120)
    torn = json.loads(out)
    assert first.returncode == 1, err
    assert not torn["complete"]
    assert not torn["proven"]
    assert 1 <= torn["parts_played"] < torn["parts"]
    assert "the same command goes on" in err
    again = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    report = json.loads(again.stdout)
    assert report["proven"]
    assert report["tally"]["submitted"] >= 400_000
