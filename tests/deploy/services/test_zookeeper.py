from pathlib import Path

import pytest
from minutewheel.deploy.services.state import Placed
from minutewheel.deploy.services.zookeeper import PORTS, configuration

pytestmark = pytest.mark.pure

DATA = Path("/folder/data")


def ensemble(count: int) -> list[Placed]:
    return [Placed(f"zookeeper-{n}", "zookeeper", n, f"127.0.0.{n}", PORTS) for n in range(1, count + 1)]


def lines(count: int, place: int) -> dict[str, str]:
    servers = ensemble(count)
    text = configuration(servers[place - 1], servers, DATA)
    return {name: value for name, _, value in (line.partition("=") for line in text.splitlines())}


def test_it_listens_where_it_was_placed_and_keeps_its_data_in_its_folder() -> None:
    settings = lines(3, 2)
    assert (settings["clientPortAddress"], settings["clientPort"]) == ("127.0.0.2", str(PORTS["client"]))
    assert settings["dataDir"] == str(DATA)


def test_alone_it_names_no_server() -> None:
    assert [name for name in lines(1, 1) if name.startswith("server.")] == []


def test_all_of_an_ensemble_name_the_same_servers() -> None:
    named = [{k: v for k, v in lines(3, place).items() if k.startswith("server.")} for place in (1, 2, 3)]
    assert named[0] == named[1] == named[2]
    assert named[0]["server.3"] == f"127.0.0.3:{PORTS['quorum']}:{PORTS['election']}"
