import os
import subprocess
import sys
from pathlib import Path

import pytest
from minutewheel.coordinator import CoordinatorUnavailable, DataFolderDamaged, DataFolderInUse
from minutewheel.coordinator.folder import FENCES_AT_ONCE, DataFolder, Occupant

OTHER_DISPATCHER = """
import sys
from pathlib import Path
from minutewheel.coordinator.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
folder.take("other")
for shard in (3, 5):
    print(folder.next_fence(shard, 0))
    folder.note_owner(shard, "other")
print("ready", flush=True)
sys.stdin.read()
"""


class Other:
    """A dispatcher in a process of its own; `fences` are those that it was given."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER_DISPATCHER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        said = list(iter(self.process.stdout.readline, "ready\n"))
        self.fences = [int(line) for line in said]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_second_dispatcher_is_refused_by_name_of_the_process_that_is_here(tmp_path: Path) -> None:
    other = Other(tmp_path)
    with pytest.raises(DataFolderInUse) as refused:
        DataFolder(tmp_path).take("me")
    assert refused.value.pid == other.process.pid
    assert str(other.process.pid) in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    other.kill()


def test_who_asks_from_beside_sees_the_holder_and_hinders_nobody(tmp_path: Path) -> None:
    onlooker = DataFolder(tmp_path)
    assert onlooker.occupant() is None
    assert onlooker.owners() == {}
    other = Other(tmp_path)
    assert onlooker.occupant() == Occupant(other.process.pid, "other")
    assert onlooker.owners() == {3: "other", 5: "other"}
    other.kill()
    assert onlooker.members() == frozenset()
    assert onlooker.owners() == {}
    DataFolder(tmp_path).take("me")


def test_fences_grow_over_kills(tmp_path: Path) -> None:
    fences = [0]
    for _ in range(3):
        other = Other(tmp_path)
        fences += other.fences
        other.kill()
        folder = DataFolder(tmp_path)
        folder.take("me")
        fences.append(folder.next_fence(3, 0))
        folder.give_up("me")
    assert fences == sorted(set(fences))


def test_in_one_process_it_can_be_taken_once_too(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    first.take("one")
    for folder in (first, DataFolder(tmp_path)):
        with pytest.raises(DataFolderInUse) as refused:
            folder.take("two")
        assert refused.value.pid == os.getpid()
    assert first.held("one")
    assert not first.held("two")


def test_a_refused_dispatcher_disturbs_nothing(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    first.take("one")
    first.note_owner(7, "one")
    with pytest.raises(DataFolderInUse):
        DataFolder(tmp_path).take("two")
    assert DataFolder(tmp_path).occupant() == Occupant(os.getpid(), "one")
    assert DataFolder(tmp_path).owners() == {7: "one"}


@pytest.mark.parametrize("lost", ["the file", "the folder"])
def test_it_is_held_no_more_where_others_would_not_look(tmp_path: Path, lost: str) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.take("me")
    if lost == "the file":
        (folder.path / "dispatcher.pid").unlink()
    else:
        (tmp_path / "data").rename(tmp_path / "elsewhere")
    assert not folder.held("me")
    successor = DataFolder(tmp_path / "data")
    successor.take("next")
    assert not folder.held("me")
    assert successor.held("next")


def test_owners_noted_by_a_dispatcher_before_are_not_those_of_the_next(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path), DataFolder(tmp_path)
    first.take("one")
    first.note_owner(7, "one")
    first.give_up("one")
    second.take("two")
    assert DataFolder(tmp_path).owners() == {}


def test_the_disk_knows_of_each_fence_before_it_is_given(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take("me")
    writes = set()
    for _ in range(3 * FENCES_AT_ONCE):
        fence = folder.next_fence(0, 0)
        written = int((folder.path / "fence").read_text())
        assert fence <= written
        writes.add(written)
    assert len(writes) == 3


def test_what_a_crash_left_half_written_counts_for_nothing(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.take("me")
    fence = folder.next_fence(0, 0)
    folder.give_up("me")
    for name in ("fence", "owners"):
        (folder.path / f"{name}.new").write_bytes(b"\0")
    folder.take("again")
    assert folder.next_fence(0, 0) > fence


def test_a_damaged_fence_file_is_named_and_the_folder_stays_free(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.path.mkdir()
    (folder.path / "fence").write_text("1O0")
    with pytest.raises(DataFolderDamaged, match="fence"):
        folder.take("me")
    (folder.path / "fence").unlink()
    folder.take("me")


def test_what_the_file_system_refuses_can_be_tried_again(tmp_path: Path) -> None:
    in_the_way = tmp_path / "data"
    in_the_way.write_text("not a folder")
    folder = DataFolder(in_the_way)
    with pytest.raises(CoordinatorUnavailable):
        folder.take("me")
    in_the_way.unlink()
    folder.take("me")
    assert folder.held("me")
