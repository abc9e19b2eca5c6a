"""The verbs of a server, on a process that is none of the products. On real ones: tests/deploy/test_services.py."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.deploy.services.errors import ServiceError
from minutewheel.deploy.services.process import Process
from minutewheel.deploy.services.server import Server
from minutewheel.deploy.services.state import Placed, State, write_state

pytestmark = pytest.mark.pure

NOBODY = {"client": 1, "quorum": 2, "election": 3}
LINES_BEFORE = "of an earlier run\n"


def placed(process: Process | None = None) -> Placed:
    return Placed("zookeeper", "zookeeper", 1, "127.0.0.1", NOBODY, process, len(LINES_BEFORE))


def held(folder: Path, program: str) -> Server:
    """A server whose process runs a shell program."""
    log = folder / "zookeeper.log"
    log.write_text(LINES_BEFORE)
    process = Process.spawn(["sh", "-c", program], log, folder)
    write_state(folder, State().put(placed(process)))
    return Server("zookeeper", folder)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = held(tmp_path, "exec sleep 1000")
    yield one
    if one.running:
        one.kill()


def test_a_name_that_the_folder_lacks_is_refused_with_those_that_it_has(server: Server) -> None:
    with pytest.raises(ServiceError, match=r"no server kafka in .*, but zookeeper"):
        Server("kafka", server.folder)


def test_a_killed_server_is_down_and_says_so_when_signalled(server: Server) -> None:
    assert server.running
    assert server.pid
    server.kill()
    assert not server.running
    assert server.pid is None
    for verb in (server.kill, server.stop, server.cont):
        with pytest.raises(ServiceError, match="zookeeper does not run"):
            verb()


def test_a_stopped_server_runs_on_when_continued(server: Server) -> None:
    server.stop()
    assert server.stopped
    assert server.running
    assert not server.ready()
    server.cont()
    assert not server.stopped


@pytest.mark.parametrize("stopped", [False, True])
def test_ending_is_asked_for_and_then_forced(tmp_path: Path, *, stopped: bool) -> None:
    deaf = held(tmp_path, 'trap "" TERM; echo deaf; while :; do sleep 0.01; done')
    while "deaf" not in deaf.last_lines():
        assert deaf.running
    if stopped:
        deaf.stop()
    deaf.end(timeout_s=0.1)
    assert not deaf.running
    deaf.end()


def test_one_that_ended_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    one = held(tmp_path, "for n in $(seq 30); do echo line $n; done")
    assert one.placed.process
    assert one.placed.process.wait_gone(30)
    with pytest.raises(ServiceError, match=r"zookeeper has ended; the end of .*zookeeper\.log:\nline 11\n") as caught:
        one.wait_ready()
    assert "line 30" in str(caught.value)
    assert "line 10" not in str(caught.value)


def test_an_earlier_run_s_lines_are_not_quoted(server: Server) -> None:
    assert server.last_lines().splitlines()[1:] == ["(nothing)"]


def test_one_that_does_not_serve_in_time_is_told(server: Server) -> None:
    with pytest.raises(ServiceError, match="zookeeper does not serve after 0 s"):
        server.wait_ready(0.0)
    server.stop()
    with pytest.raises(ServiceError, match=r"zookeeper is stopped \(SIGSTOP\) after 0 s"):
        server.wait_ready(0.0)


def test_data_is_wiped_only_while_it_does_not_run(server: Server) -> None:
    (server.home / "data").mkdir(parents=True)
    with pytest.raises(ServiceError, match="zookeeper runs"):
        server.wipe()
    assert (server.home / "data").is_dir()
    server.kill()
    server.wipe()
    server.wipe()
    assert not server.home.exists()
    assert server.log.exists()


def test_a_recycled_process_id_is_left_alone(tmp_path: Path, server: Server) -> None:
    process = server.placed.process
    assert process
    write_state(tmp_path, State().put(placed(Process(process.pid, process.start_ticks - 1))))
    assert not server.running
    server.end()
    with pytest.raises(ServiceError, match="does not run"):
        server.kill()
    assert process.alive
    process.send(signal.SIGKILL)


def test_one_that_never_ran_can_be_neither_ended_nor_signalled(tmp_path: Path) -> None:
    write_state(tmp_path, State().put(placed()))
    one = Server("zookeeper", tmp_path)
    one.end()
    with pytest.raises(ServiceError, match="zookeeper has never run"):
        one.kill()
