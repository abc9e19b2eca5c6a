"""What the conformance suite can't see: retention, and that look-ups are seeks."""

import sqlite3
from collections.abc import Iterator

import pytest
from minutewheel.store.progress import Closing
from minutewheel.store.sqlite import SCHEMA
from minutewheel.store.sqlite_connection import Connection
from minutewheel.store.sqlite_rows import closing, drop, filings, letters, page, prune, put_closing, tasks, write
from minutewheel.store.task import BucketRow, DeadLetter, State, TaskRow
from msgspec.structs import replace

pytestmark = pytest.mark.pure

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
OLD_MS = NOW_MS - 7 * DAY_MS - 1
LETTER = DeadLetter("acme/1", 1, "mail", "failed", 5, OLD_MS, b"record")
ROW = BucketRow(7, 0, 420_000, 1, b"record")


@pytest.fixture
def connection() -> Iterator[Connection]:
    connection = Connection.open(":memory:", SCHEMA)
    yield connection
    connection.close()


def task(key: str, state: State, updated_ms: int) -> TaskRow:
    return TaskRow(key, 1, 1, 7, 420_000, state, 1, "mail", b"", updated_ms=updated_ms)


def prune_at(connection: Connection, now_ms: int) -> int:
    return connection.write(prune, 3, now_ms, 7 * DAY_MS)


@pytest.mark.parametrize("state", ["done", "cancelled", "expired", "dead"])
def test_final_rows_go_after_their_retention(connection: Connection, state: State) -> None:
    connection.write(write, 3, 1, [task("acme/old", state, OLD_MS), task("acme/young", state, OLD_MS + 1)])
    assert prune_at(connection, NOW_MS) == 1
    assert [row.key for row in connection.read(tasks, 3, ["acme/old", "acme/young"])] == ["acme/young"]


def test_a_task_that_still_waits_never_goes(connection: Connection) -> None:
    connection.write(write, 3, 1, [task("acme/1", "scheduled", 0), ROW])
    assert prune_at(connection, NOW_MS) == 0
    assert connection.read(tasks, 3, ["acme/1"])
    assert connection.read(page, 3, 7, 0, (-1, -1), 9) == [ROW]


def test_other_shards_are_left_alone(connection: Connection) -> None:
    connection.write(write, 4, 1, [task("acme/1", "done", 0)])
    assert prune_at(connection, NOW_MS) == 0


def test_a_dead_task_stays_while_its_letter_does(connection: Connection) -> None:
    connection.write(write, 3, 1, [task("acme/1", "dead", OLD_MS), LETTER])
    assert prune_at(connection, NOW_MS) == 0
    connection.write(write, 3, 2, [replace(LETTER, record=b"")])
    assert prune_at(connection, NOW_MS) == 1
    assert connection.read(tasks, 3, ["acme/1"]) == []


def test_a_settled_letter_outranks_its_past_for_the_retention(connection: Connection) -> None:
    connection.write(write, 3, 2, [replace(LETTER, record=b"")])
    assert prune_at(connection, NOW_MS) == 0
    connection.write(write, 3, 1, [LETTER])
    assert connection.read(letters, 3, ["acme/1"]) == []
    assert prune_at(connection, NOW_MS + 7 * DAY_MS + 1) == 1


def test_a_letter_that_dies_again_is_not_pruned_as_the_settled_one(connection: Connection) -> None:
    connection.write(write, 3, 1, [replace(LETTER, record=b"")])
    prune_at(connection, NOW_MS)
    connection.write(write, 3, 2, [LETTER])
    assert prune_at(connection, NOW_MS + 30 * DAY_MS) == 0
    assert connection.read(letters, 3, ["acme/1"]) == [LETTER]


def test_a_drop_hides_late_rows_for_the_retention_from_when_it_is_first_seen(connection: Connection) -> None:
    connection.write(drop, 3, 7, 1, 5)
    assert prune_at(connection, NOW_MS) == 0
    assert prune_at(connection, NOW_MS + 7 * DAY_MS) == 0
    connection.write(write, 3, 5, [ROW])
    assert connection.read(page, 3, 7, 0, (-1, -1), 9) == []
    assert prune_at(connection, NOW_MS + 7 * DAY_MS + 1) == 1


def test_a_closing_record_stays_for_the_retention(connection: Connection) -> None:
    record = Closing(7, 3, 2, 1, 0, 1 << 63)
    connection.write(put_closing, 3, record)
    prune_at(connection, NOW_MS)
    assert connection.read(closing, 3, 7) == record
    prune_at(connection, NOW_MS + 7 * DAY_MS + 1)
    assert connection.read(closing, 3, 7) is None


def test_look_ups_seek_and_never_scan(connection: Connection) -> None:
    """Every statement that the look-ups run, explained by SQLite itself."""
    statements: list[str] = []

    def explained(db: sqlite3.Connection) -> list[str]:
        db.set_trace_callback(statements.append)
        tasks(db, 3, ["acme/1"])
        filings(db, 3, [(7, 420_000, 1)])
        page(db, 3, 7, 0, (0, 0), 10)
        letters(db, 3, ["acme/1"])
        db.set_trace_callback(None)
        return [step[3] for statement in statements for step in db.execute(f"EXPLAIN QUERY PLAN {statement}")]

    connection.write(write, 3, 1, [ROW, task("acme/1", "done", 0), LETTER])
    plan = connection.read(explained)
    assert len(statements) == 5
    assert [step for step in plan if step.startswith("SEARCH")]
    assert [step for step in plan if step.startswith("SCAN") and "json_each" not in step and "seek" not in step] == []
    assert [step for step in plan if "TEMP B-TREE FOR ORDER BY" in step] == []
