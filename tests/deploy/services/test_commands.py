from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from minutewheel.deploy.services.commands import main
from minutewheel.deploy.services.process import Process
from minutewheel.deploy.services.state import Placed, State, write_state

pytestmark = pytest.mark.pure

Output = pytest.CaptureFixture[str]


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    """The process of the folder's one server."""
    process = Process.spawn(["sleep", "1000"], tmp_path / "log", tmp_path)
    write_state(tmp_path, State().put(Placed("kafka", "kafka", 1, "127.0.0.1", {"client": 1}, process)))
    yield process
    process.send(9)


def run(folder: Path, *arguments: str) -> int:
    return main([*arguments, "--folder", str(folder)])


def test_status_is_a_line_a_server_or_a_document(tmp_path: Path, sleeper: Process, capsys: Output) -> None:
    assert run(tmp_path, "status") == 0
    assert capsys.readouterr().out.split()[:5] == ["kafka", "starting", "127.0.0.1:1", "pid", str(sleeper.pid)]
    assert run(tmp_path, "status", "--json") == 0
    (found,) = msgspec.json.decode(capsys.readouterr().out)
    assert found["address"] == "127.0.0.1:1"
    assert found["state"] == "starting"


def test_an_empty_folder_is_said_to_be_so(tmp_path: Path, capsys: Output) -> None:
    assert run(tmp_path, "status") == 0
    assert capsys.readouterr().out == f"there is no server in {tmp_path}\n"
    assert run(tmp_path, "status", "--json") == 0
    assert capsys.readouterr().out == "[]\n"


def test_the_verbs_signal_the_one_named(tmp_path: Path, sleeper: Process) -> None:
    assert run(tmp_path, "stop", "kafka") == 0
    assert sleeper.stopped
    assert run(tmp_path, "cont", "kafka") == 0
    assert not sleeper.stopped
    assert run(tmp_path, "kill", "kafka") == 0
    assert not sleeper.alive


def test_down_names_what_it_ended(tmp_path: Path, sleeper: Process, capsys: Output) -> None:
    assert run(tmp_path, "down") == 0
    assert capsys.readouterr().out == "ended: kafka\n"
    assert run(tmp_path, "down", "--json") == 0
    assert capsys.readouterr().out == "[]\n"
    assert not sleeper.alive


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["up", "redis"], "there is no redis: products are cassandra, kafka, zookeeper\n"),
        (["kill", "kafka"], "there is no server kafka in {folder}, but none\n"),
        (["down", "kafka"], "there is no server kafka in {folder}, but none\n"),
    ],
)
def test_what_is_not_there_is_one_line_and_code_1(
    tmp_path: Path, capsys: Output, arguments: list[str], says: str
) -> None:
    assert run(tmp_path, *arguments) == 1
    assert capsys.readouterr().err == says.format(folder=tmp_path)


def test_the_console_producer_needs_a_kafka(tmp_path: Path, capsys: Output) -> None:
    assert run(tmp_path, "console-producer", "somewhere") == 1
    assert "there is no Kafka in" in capsys.readouterr().err
