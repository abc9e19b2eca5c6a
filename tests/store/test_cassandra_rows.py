"""Are pages followed by their state, and not by what they hold? And does each key have its place?"""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from cassandra.query import SimpleStatement
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.cassandra_reactor import Home
from minutewheel.store.cassandra_rows import CassandraRows, Keep, part_of
from minutewheel.store.cassandra_statements import batch, bigint_value, smallint_value
from minutewheel.store.errors import NotApplied, StoreError, UnknownOutcome
from minutewheel.store.task import BucketRow, TaskRow

START = 29_000_000
BASE = START * 60_000
DEAD = 50_000


def test_the_part_of_a_key_is_fixed_for_ever() -> None:
    assert [part_of(key, 64) for key in ("acme/1", "acme/größe", "")] == [3, 23, 0]
    parts = [part_of(f"acme/{n}", 64) for n in range(6_400)]
    assert max(parts.count(part) for part in range(64)) < 200


class Scripted(CassandraConnection):
    """Pages as a server may answer them: some are empty, though more follow."""

    def __init__(self) -> None:
        super().__init__(None, None, Home(), 1)
        self._pages = [range(0), range(5), range(0), range(5, 10), range(0)]
        self.asked: list[bytes | None] = []

    async def prepare(self, cql: str, *, serial: bool = False) -> Any:
        return SimpleNamespace()

    async def page(self, statement: Any, paging_state: bytes | None = None) -> tuple[list[Any], bytes | None]:
        at = int(paging_state or b"0")
        self.asked.append(paging_state)
        rows: list[Any] = [(BASE + n, n, b"record") for n in self._pages[at]]
        return rows, b"%d" % (at + 1) if at + 1 < len(self._pages) else None


async def test_empty_pages_do_not_end_a_reading() -> None:
    connection = Scripted()
    assert [row[1] for row in await connection.read(None)] == list(range(10))
    assert connection.asked == [None, b"1", b"2", b"3", b"4"]


async def test_a_bucket_is_read_over_empty_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minutewheel.store.cassandra_rows.packed", lambda *_, **__: None)
    rows = await CassandraRows.open(Scripted(), "any", 64, Keep())
    assert [row.filing for row in await rows.page(7, START, 0, (-1, -1), 10)] == list(range(10))


@pytest.mark.real
async def test_a_desert_of_deleted_rows_hides_none_that_live(keyspace: Any, connection: CassandraConnection) -> None:
    rows = await CassandraRows.open(connection, keyspace.name, 64, Keep())
    delete = await connection.prepare(
        f"DELETE FROM {keyspace.name}.bucket USING TIMESTAMP 9"
        " WHERE minute = ? AND shard = ? AND piece = ? AND due_ms = ? AND filing = ?"
    )
    place = [bigint_value(9), bigint_value(START), smallint_value(40), smallint_value(0)][1:]
    keys = [[*place, bigint_value(BASE + n), bigint_value(n)] for n in range(DEAD)]
    for first in range(0, DEAD, 8_000):
        some = (keys[at : at + 1_000] for at in range(first, min(first + 8_000, DEAD), 1_000))
        await asyncio.gather(*(connection.write(batch(delete, group)) for group in some))
    alive = [BucketRow(START, 0, BASE + DEAD + n, n, b"record") for n in range(10)]
    await rows.write(40, 5, alive)
    assert await rows.page(40, START, 0, (-1, -1), 1_000) == alive
    assert await rows.page(40, START, 0, (BASE + DEAD + 3, 3), 1_000) == alive[4:]  # the second does not begin anew


@pytest.mark.real
@pytest.mark.parametrize(("state", "lives"), [("scheduled", False), ("dead", False), ("done", True)])
async def test_only_final_states_have_a_time_to_live(
    keyspace: Any, connection: CassandraConnection, state: Any, lives: bool
) -> None:
    rows = await CassandraRows.open(connection, keyspace.name, 64, Keep(tasks_s=500))
    key = f"acme/{state}"
    await rows.write(41, 5, [TaskRow(key, 1, 1, START, BASE, state, 1, "mail", b"")])
    where = f"shard = 41 AND part = {part_of(key, 64)} AND key = '{key}'"
    cql = f"SELECT ttl(state) FROM {keyspace.name}.task WHERE {where}"
    [(ttl_s,)] = await connection.read(SimpleStatement(cql))
    assert (0 < ttl_s <= 500) if lives else ttl_s is None


class Refusing(Scripted):
    """Refuses all writes, and notes how many rows each would have put."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []

    async def write(self, statement: Any) -> None:
        self.rows.append(statement)
        raise NotApplied("Unavailable")


@pytest.mark.parametrize(
    ("minutes", "kind", "rows"), [([0], NotApplied, 1), ([0, 0], NotApplied, 2), ([0, 1, 2], UnknownOutcome, 3)]
)
async def test_a_statement_for_several_partitions_may_be_done_in_part(
    monkeypatch: pytest.MonkeyPatch, minutes: list[int], kind: type[StoreError], rows: int
) -> None:
    monkeypatch.setattr("minutewheel.store.cassandra_rows.batch", lambda _, packed: len(packed))
    connection = Refusing()
    store = await CassandraRows.open(connection, "any", 64, Keep())
    with pytest.raises(StoreError) as raised:
        await store.write(7, 5, [BucketRow(START + at, 0, BASE, n, b"") for n, at in enumerate(minutes)])
    assert type(raised.value) is kind
    assert connection.rows == [rows]


@pytest.mark.real
async def test_rows_of_many_minutes_are_all_written(keyspace: Any, connection: CassandraConnection) -> None:
    """Some alone in their minute, some not, some too large to share a statement."""
    rows = await CassandraRows.open(connection, keyspace.name, 64, Keep())
    filed = [BucketRow(START + n % 70, n // 90, BASE, n, bytes(9_000 if n % 7 == 0 else 90)) for n in range(100)]
    await rows.write(42, 5, filed)
    found = await rows.filings(42, [(row.minute, row.due_ms, row.filing) for row in filed], {})
    assert sorted(found, key=lambda row: row.filing) == filed
