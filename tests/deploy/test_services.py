"""The whole life of a real server, the quickest of the three: started, asked, killed, started again, wiped, ended."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from kazoo.client import KazooClient
from minutewheel.deploy.services import Server, down, server, up
from minutewheel.deploy.services.commands import main

pytestmark = pytest.mark.real

PATH = "/kept"


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[Server]:
    try:
        up(["zookeeper"], tmp_path)
        yield server("zookeeper", tmp_path)
    finally:
        down(tmp_path)


def ask(address: str, *, create: bool = False) -> bool:
    """Whether the path is there, with a session of its own."""
    client = KazooClient(address, timeout=10)
    client.start()
    try:
        if create:
            client.create(PATH)
        return client.exists(PATH) is not None
    finally:
        client.stop()
        client.close()


def test_the_life_of_a_server(zookeeper: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address, pid = zookeeper.address, zookeeper.pid
    assert zookeeper.ready()
    assert ask(address, create=True)
    assert main(["status", "--json", "--folder", str(tmp_path)]) == 0
    (found,) = msgspec.json.decode(capsys.readouterr().out)
    assert found["state"] == "serving"
    assert (found["name"], found["address"], found["pid"]) == ("zookeeper", address, pid)

    zookeeper.kill()
    assert not zookeeper.running
    zookeeper.start()
    assert zookeeper.address == address
    assert zookeeper.pid != pid
    assert ask(address)

    zookeeper.kill()
    zookeeper.wipe()
    zookeeper.start()
    assert not ask(address)

    zookeeper.stop()
    assert zookeeper.stopped
    assert down(tmp_path) == ["zookeeper"]
    assert zookeeper.pid is None


def test_two_folders_have_ports_of_their_own(zookeeper: Server, tmp_path: Path) -> None:
    other = tmp_path / "other"
    try:
        assert up(["zookeeper"], other).zookeeper != zookeeper.address
        ask(zookeeper.address, create=True)
        assert not ask(server("zookeeper", other).address)
    finally:
        down(other)
