"""What the conformance suite can't see: how much the progress leaves in the file."""

from collections.abc import Iterator

import pytest
from minutewheel.store.errors import NotApplied
from minutewheel.store.progress import Checkpoint, NewMarks, pack_filings
from minutewheel.store.sqlite import SCHEMA
from minutewheel.store.sqlite_connection import Connection
from minutewheel.store.sqlite_progress import claim, marks, read, record, set_up
from msgspec.structs import replace

pytestmark = pytest.mark.pure

START = 29_000_000
PLAIN = Checkpoint(1, (0, 0, 0), START, START)


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection.open(":memory:", SCHEMA)
    connection.write(set_up, START, [(0, 0, 0)] * 2)
    connection.write(claim, 1, 5, "a", START)
    yield connection
    connection.close()


def rows(connection: Connection, table: str) -> list[tuple[object, ...]]:
    return connection.read(lambda db: db.execute(f"SELECT * FROM {table}").fetchall())


def test_marks_are_one_packed_row_a_checkpoint_and_minute(connection: Connection) -> None:
    connection.write(record, 1, 5, replace(PLAIN, number=8, marks=(NewMarks(START, (1, 2), (3,)),)))
    connection.write(record, 1, 5, replace(PLAIN, number=9, marks=(NewMarks(START, (4,)),)))
    assert rows(connection, "mark") == [
        (1, START, 8, pack_filings((1, 2)), pack_filings((3,))),
        (1, START, 9, pack_filings((4,)), b""),
    ]


def test_a_shard_that_closes_its_minutes_leaves_nothing_behind(connection: Connection) -> None:
    for n in range(200):
        minute = START + n
        new = (NewMarks(minute, (n,)), NewMarks(minute + 1, (), (n,)))
        connection.write(record, 1, 5, Checkpoint(n, (n, n, n), minute, minute, new, (minute + 1,), ((minute, 2),)))
    connection.write(record, 1, 5, Checkpoint(999, (0, 0, 0), START + 500, START + 500))
    assert [rows(connection, table) for table in ("mark", "closed", "piece")] == [[], [], []]
    progress = connection.read(read, 1, START + 999)
    assert (progress.offsets, progress.open_minute) == ((199, 199, 199), START + 500)


def test_marks_of_a_passed_minute_are_not_taken(connection: Connection) -> None:
    connection.write(record, 1, 5, replace(PLAIN, number=2, open_minute=START + 2))
    connection.write(record, 1, 5, replace(PLAIN, number=3, marks=(NewMarks(START + 1, (1,)),), closed=(START + 1,)))
    assert connection.read(marks, 1, [START + 1]) == {}
    assert connection.read(read, 1, START + 9).closed == set()


def test_a_shard_that_was_never_set_up_says_so(connection: Connection) -> None:
    for work in (lambda db: claim(db, 9, 1, "a", START), lambda db: record(db, 9, 1, PLAIN), lambda db: read(db, 9, 0)):
        with pytest.raises(NotApplied, match="shard 9 was never set up"):
            connection.write(work)
