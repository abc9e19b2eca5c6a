"""What the store's and the ledger's suites share: a keyspace of this run's own on the real Cassandra."""

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from minutewheel.store.cassandra_bridge import Access, CassandraConnection
from minutewheel.store.cassandra_schema import apply_schema


class Keyspace(NamedTuple):
    access: Access
    name: str


@pytest.fixture(scope="session")
def keyspace(services: Any) -> Iterator[Keyspace]:
    host, _, port = services.cassandra.rpartition(":")
    made = Keyspace(Access((host,), int(port)), f"mw_test_{secrets.token_hex(4)}")

    async def create() -> None:
        connection = await CassandraConnection.open(made.access)
        assert await apply_schema(connection, made.name, {"class": "SimpleStrategy", "replication_factor": 1}) == []
        await connection.close()

    async def drop() -> None:
        connection = await CassandraConnection.open(made.access)
        await connection.alter(f"DROP KEYSPACE {made.name}")
        await connection.close()

    asyncio.run(create())
    yield made
    asyncio.run(drop())
