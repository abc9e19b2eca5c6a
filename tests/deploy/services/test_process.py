import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.deploy.services.process import SLEEP_SLACK_NS, Process

pytestmark = pytest.mark.pure

FOREVER = ["sleep", "1000"]
GONE_S = 30


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    process = Process.spawn(FOREVER, tmp_path / "log", tmp_path)
    yield process
    process.send(signal.SIGKILL)
    assert process.wait_gone(GONE_S)


def test_what_is_started_lives_in_a_session_of_its_own(sleeper: Process) -> None:
    assert sleeper.alive
    assert os.getsid(sleeper.pid) != os.getsid(0)


def test_its_short_sleeps_may_last_longer(sleeper: Process) -> None:
    assert int(Path(f"/proc/{sleeper.pid}/timerslack_ns").read_text()) == SLEEP_SLACK_NS


def test_both_outputs_are_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    program = "import os, sys; print(os.getcwd(), flush=True); print('fault', file=sys.stderr)"
    assert Process.spawn([sys.executable, "-c", program], log, tmp_path).wait_gone(GONE_S)
    assert log.read_text().splitlines() == ["before", str(tmp_path), "fault"]


def test_a_killed_process_is_gone_and_takes_no_signal(sleeper: Process) -> None:
    assert sleeper.send(signal.SIGKILL)
    assert sleeper.wait_gone(GONE_S)
    assert not sleeper.alive
    assert not sleeper.send(signal.SIGTERM)


def test_an_id_that_was_given_away_again_is_another_process(sleeper: Process) -> None:
    """The process that had this id before started at another moment. Its successor must not be hit."""
    former = Process(sleeper.pid, sleeper.start_ticks - 1)
    assert not former.alive
    assert not former.send(signal.SIGKILL)
    assert former.wait_gone(0)
    assert sleeper.alive


def test_one_that_no_one_asked_after_is_gone() -> None:
    """A zombie: ended, but its parent has not taken notice."""
    child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    ticks = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19])
    process = Process(child, ticks)
    assert process.alive
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert not process.alive
    assert not process.send(signal.SIGTERM)
    os.waitpid(child, 0)


def test_waiting_for_one_that_stays_ends_in_time(sleeper: Process) -> None:
    assert not sleeper.wait_gone(0.01)


def test_a_stopped_process_is_alive_and_goes_on(sleeper: Process) -> None:
    assert not sleeper.stopped
    sleeper.send(signal.SIGSTOP)
    assert sleeper.wait_stopped(GONE_S)
    assert sleeper.stopped
    assert sleeper.alive
    sleeper.send(signal.SIGCONT)
    assert not sleeper.stopped
    assert not sleeper.wait_stopped(0.01)
