import fcntl
from pathlib import Path

import pytest
from minutewheel.deploy.services.errors import ServiceError
from minutewheel.deploy.services.process import Process
from minutewheel.deploy.services.state import FILE, Placed, State, read_state, turn, write_state

pytestmark = pytest.mark.pure

KAFKA = Placed("kafka", "kafka", 1, "127.0.0.1", {"client": 19092, "controller": 19093}, Process(1, 2), 77)
FIRST = Placed("zookeeper-1", "zookeeper", 1, "127.0.0.1", {"client": 12181})
SECOND = Placed("zookeeper-2", "zookeeper", 2, "127.0.0.2", {"client": 12181})


def test_what_was_written_is_read_and_nothing_else_is_left(tmp_path: Path) -> None:
    state = State(cluster=True).put(KAFKA, FIRST, SECOND)
    write_state(tmp_path, State())
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    assert [file.name for file in tmp_path.iterdir()] == [FILE]


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read_state(tmp_path / "none") == State()


@pytest.mark.parametrize("text", ["", "{", '{"servers": {"kafka": {"name": "kafka"}}}', '{"servers": []}'])
def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ServiceError, match=FILE):
        read_state(tmp_path)


def test_putting_replaces_by_name_and_keeps_the_others() -> None:
    state = State().put(FIRST, SECOND, KAFKA).put(Placed("kafka", "kafka", 1, "127.0.0.1", {"client": 1}))
    assert state.of("zookeeper") == [FIRST, SECOND]
    assert [placed.address for placed in state.of("kafka")] == ["127.0.0.1:1"]


def test_one_at_a_time_has_the_folder_s_turn(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    with turn(folder), (folder / "turn").open("w") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (folder / "turn").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_one_that_never_ran_does_not_run() -> None:
    assert not FIRST.running
