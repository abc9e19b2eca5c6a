"""What does not need Java. Whole lives of real servers: tests/deploy/test_services.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.deploy.services.errors import ServiceError
from minutewheel.deploy.services.launch import addresses, default_folder, down, server, status, up
from minutewheel.deploy.services.process import Process
from minutewheel.deploy.services.state import Placed, Product, State, write_state

pytestmark = pytest.mark.pure

PORTS = {"client": 1, "quorum": 2, "election": 3}


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    process = Process.spawn(["sleep", "1000"], tmp_path / "log", tmp_path)
    yield process
    process.send(9)


def put(folder: Path, *servers: tuple[Product, int, Process | None], cluster: bool = False) -> None:
    made = [
        Placed(f"{product}-{place}", product, place, f"127.0.0.{place}", PORTS, process)
        for product, place, process in servers
    ]
    write_state(folder, State(cluster).put(*made))


def test_a_folder_that_is_not_there_has_nothing_and_is_not_made(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert status(folder) == []
    assert down(folder) == []
    assert addresses(folder).kafka == ""
    assert not folder.exists()


def test_the_addresses_of_a_cluster_are_one_text(tmp_path: Path) -> None:
    put(tmp_path, ("zookeeper", 1, None), ("kafka", 1, None), ("zookeeper", 2, None))
    found = addresses(tmp_path)
    assert (found.cassandra, found.kafka, found.zookeeper) == ("", "127.0.0.1:1", "127.0.0.1:1,127.0.0.2:1")


def test_status_tells_what_is_down_stopped_and_starting(tmp_path: Path, sleeper: Process) -> None:
    put(tmp_path, ("zookeeper", 1, sleeper), ("kafka", 1, None))
    assert [(one.name, one.state, one.pid) for one in status(tmp_path)] == [
        ("zookeeper-1", "starting", sleeper.pid),
        ("kafka-1", "down", None),
    ]
    server("zookeeper-1", tmp_path).stop()
    assert status(tmp_path)[0].state == "stopped"


def test_down_ends_what_it_is_told_to_and_nothing_else(tmp_path: Path, sleeper: Process) -> None:
    other = Process.spawn(["sleep", "1000"], tmp_path / "log", tmp_path)
    recycled = Process(other.pid, other.start_ticks - 1)
    put(tmp_path, ("zookeeper", 1, sleeper), ("zookeeper", 2, None), ("kafka", 1, recycled))
    assert down(tmp_path, ["zookeeper-2"]) == []
    assert sleeper.alive
    assert down(tmp_path) == ["zookeeper-1"]
    assert not sleeper.alive
    assert other.alive
    other.send(9)


def test_a_name_that_is_not_there_ends_nothing(tmp_path: Path, sleeper: Process) -> None:
    put(tmp_path, ("zookeeper", 1, sleeper))
    with pytest.raises(ServiceError, match="no server kafka"):
        down(tmp_path, ["zookeeper-1", "kafka"])
    assert sleeper.alive


@pytest.mark.parametrize(("has", "wants"), [(True, False), (False, True)])
def test_a_folder_is_either_of_single_servers_or_of_a_cluster(tmp_path: Path, *, has: bool, wants: bool) -> None:
    put(tmp_path, ("zookeeper", 1, None), cluster=has)
    with pytest.raises(ServiceError, match="take another folder"):
        up(["zookeeper"], tmp_path, cluster=wants)


def test_the_folder_is_the_checkout_s_if_nothing_else_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINUTEWHEEL_SERVICES", raising=False)
    assert default_folder() == Path(__file__).parents[3] / ".services"
    monkeypatch.setenv("MINUTEWHEEL_SERVICES", str(tmp_path))
    assert default_folder() == tmp_path
