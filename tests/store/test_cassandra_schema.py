"""Is each difference between a keyspace and what this release needs told in a sentence?"""

import secrets
from collections.abc import AsyncIterator

import pytest
from minutewheel.store import cassandra_schema as made
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.errors import NewerSchema, NoSchema, StoreError

REPLICATION: dict[str, str | int] = {"class": "SimpleStrategy", "replication_factor": 1}


def test_the_schema_declares_its_tables() -> None:
    tables = made.declared(made.SCHEMA.read_text())
    assert tables["bucket"].partition_key == ("minute", "shard", "piece")
    assert tables["bucket"].clustering == ("due_ms", "filing")
    assert tables["progress"].columns["fence"] == "bigint static"
    assert (tables["progress"].gc_grace_s, tables["task"].gc_grace_s) == (600, made.GC_GRACE_S)


@pytest.mark.parametrize("name", ["", "9a", "a-b", "A", "a;drop", "a" * 49, "a\n"])
def test_what_is_no_keyspace_name_is_refused(name: str) -> None:
    with pytest.raises(StoreError):
        made.check_name(name)


@pytest.fixture
async def empty(connection: CassandraConnection) -> AsyncIterator[str]:
    name = f"mw_test_{secrets.token_hex(4)}"
    yield name
    await connection.alter(f"DROP KEYSPACE IF EXISTS {name}")


@pytest.mark.real
async def test_what_differs_is_told_and_set_up_makes_what_is_missing(
    connection: CassandraConnection, empty: str
) -> None:
    assert await made.check_schema(connection, empty) == [f"keyspace {empty} is missing"]
    with pytest.raises(NoSchema, match="minutewheel setup"):
        await made.parts_of(connection, empty)
    assert await made.apply_schema(connection, empty, REPLICATION, parts=512) == []
    assert await made.apply_schema(connection, empty, REPLICATION, parts=64) == []
    assert await made.parts_of(connection, empty) == 512  # fixed at the first set-up
    for change in ("ALTER TABLE {0}.task DROP note", "ALTER TABLE {0}.queue ADD more text", "DROP TABLE {0}.closing"):
        await connection.alter(change.format(empty))
    await connection.alter(f"ALTER TABLE {empty}.progress WITH gc_grace_seconds = 864000")
    found = await made.check_schema(connection, empty, {**REPLICATION, "replication_factor": 3})
    assert [text.partition(":")[0] for text in found] == [
        *(f"keyspace {empty}", "table task", "table progress", "table closing is missing", "table queue")
    ]
    await connection.alter(f"INSERT INTO {empty}.meta (name, value) VALUES ('schema', '99')")
    for refused in (made.parts_of(connection, empty), made.apply_schema(connection, empty, REPLICATION)):
        with pytest.raises(NewerSchema):
            await refused


@pytest.mark.real
@pytest.mark.parametrize("asked", [{"parts": 0}, {"parts": made.PARTS_MAX + 1}])
async def test_a_number_of_parts_has_limits(connection: CassandraConnection, asked: dict[str, int]) -> None:
    with pytest.raises(StoreError, match="parts"):
        await made.apply_schema(connection, "never_made", REPLICATION, **asked)
    assert await made.check_schema(connection, "never_made") == ["keyspace never_made is missing"]


def test_a_replication_is_words_alone() -> None:
    with pytest.raises(StoreError):
        made._map({"class": "SimpleStrategy'}; DROP"})
