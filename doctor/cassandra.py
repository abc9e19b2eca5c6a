"""What does Cassandra say of our keyspace, its servers, its clock, and of the shards' progress?"""

from contextlib import AsyncExitStack
from typing import Any

from .. import fleet
from ..dispatcher.clock import SystemClock
from ..settings import Settings
from ..store.cassandra_bridge import CassandraConnection
from ..store.errors import NotApplied
from ..store.progress import Offsets
from ..store.task import SHARDS
from .clocks import Reading, clock_findings
from .finding import Finding
from .kafka import Kept
from .schema import (
    CASSANDRA,
    copies_findings,
    keyspace_findings,
    schema_findings,
    unbegun_findings,
)
from .versions import server_findings

BROKEN = {"keyspace_missing", "table_missing", "column", "primary_key", "parts", "schema_newer", "schema_older"}
"""With one of these, our own statements may not work."""


async def cassandra_findings(settings: Settings, clock: SystemClock, found: list[Finding]) -> Kept:
    """Put into `found` what is wrong. `StoreError` when nobody answers any more; what was found until then stays."""
    async with AsyncExitStack() as stack:
        connection = await fleet.open_cassandra(settings, stack)
        found += await _server(connection, clock, settings.cassandra.replication)
        found += await _keyspace(connection, settings.cassandra.keyspace)
        found += schema_findings(await fleet.cassandra_faults(settings, connection))
        if {finding.code for finding in found} & BROKEN:
            return Kept()
        more, kept = await _kept(settings, connection)
        found += more
        return kept


async def _server(connection: CassandraConnection, clock: SystemClock, replication: int) -> list[Finding]:
    before_ms = clock.now_ms()
    version, theirs_ms = (await _rows(connection, "SELECT release_version, toUnixTimestamp(now()) FROM system.local"))[
        0
    ]
    found = clock_findings(CASSANDRA, Reading(before_ms, theirs_ms, clock.now_ms()))
    peers = await _rows(connection, "SELECT release_version FROM system.peers")
    oldest = min((version, *(peer for (peer,) in peers if peer)))
    return found + server_findings(CASSANDRA, oldest) + copies_findings(replication, 1 + len(peers))


async def _keyspace(connection: CassandraConnection, keyspace: str) -> list[Finding]:
    durable = await _rows(
        connection, "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?", keyspace
    )
    ttl_s = await _rows(
        connection,
        "SELECT table_name, default_time_to_live FROM system_schema.tables WHERE keyspace_name = ?",
        keyspace,
    )
    return keyspace_findings(keyspace, dict(ttl_s), durable=durable[0][0]) if durable else []


async def _kept(settings: Settings, connection: CassandraConnection) -> tuple[list[Finding], Kept]:
    store = await fleet.open_store(settings, connection)
    places: list[Offsets] = []
    unbegun = []
    for shard in range(SHARDS):
        try:
            places.append((await store.progress(shard, -1)).offsets)
        except NotApplied:
            unbegun.append(shard)
    queues = [queue.name for queue in await store.queues()]
    return unbegun_findings(unbegun), Kept(queues, None if unbegun else places)


async def _rows(connection: CassandraConnection, query: str, *values: object) -> list[tuple[Any, ...]]:
    return await connection.read((await connection.prepare(query)).bind(values))
