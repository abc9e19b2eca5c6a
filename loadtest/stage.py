"""On which fleet does a load test run, and what is left of it afterwards?

On one of its own: topics, keyspace and folder of ZooKeeper have names that end at random, are made by the same code as
`minutewheel setup`, and are removed at the end, whatever happened. The services are those of the configuration; if it
says nothing of any, those that `python -m minutewheel.deploy.services up` runs on this machine.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from .. import fleet
from ..broker.kafka_admin import Admin
from ..coordinator.zookeeper_connection import Connection
from ..coordinator.zookeeper_tree import Tree
from ..deploy.services import addresses, default_folder, status
from ..settings import Settings
from ..store.task import SHARDS
from ..wiring import set_up

QUEUE = "load"
GONE_S = 30.0
LOOK_S = 0.2


class LoadTestFailed(Exception):
    """The test could not be brought to its end, or what it counted is not what it did."""


@asynccontextmanager
async def staged(settings: Settings) -> AsyncIterator[Settings]:
    """The settings of a fleet that is there for the length of the block."""
    own = own_fleet(settings if settings.mode == "real" else local(settings, default_folder()))
    try:
        await set_up(own)
        yield own
    finally:
        await remove(own)


def local(settings: Settings, folder: Path) -> Settings:
    """The same on the services of a folder, in the clear. `LoadTestFailed` if not all of them serve."""
    there = addresses(folder)
    serve = all(one.state == "serving" for one in status(folder))
    if not (serve and there.cassandra and there.kafka and there.zookeeper):
        raise LoadTestFailed("no services: name some (--config), or start some here (docs/services.md)")
    parts: dict[str, dict[str, object]] = {
        "cassandra": {"hosts": tuple(there.cassandra.split(",")), "replication": 1},
        "kafka": {"bootstrap": tuple(there.kafka.split(",")), "replication": 1},
        "zookeeper": {"hosts": tuple(there.zookeeper.split(","))},
    }
    made = {
        name: getattr(settings, name).model_copy(update={"security": "plaintext", **values})
        for name, values in parts.items()
    }
    return settings.model_copy(update={"mode": "real", **made})


def own_fleet(settings: Settings) -> Settings:
    """The same with names of its own, and one queue."""
    suffix = secrets.token_hex(4)
    return settings.model_copy(
        update={
            "topics": settings.topics.model_copy(update={"prefix": f"{settings.topics.prefix[:80]}-load-{suffix}"}),
            "cassandra": settings.cassandra.model_copy(
                update={"keyspace": f"{settings.cassandra.keyspace[:34]}_load_{suffix}"}
            ),
            "zookeeper": settings.zookeeper.model_copy(update={"chroot": f"/minutewheel-load-{suffix}"}),
            "queues": (QUEUE,),
        }
    )


def with_lead(settings: Settings, lead_ms: int) -> Settings:
    """The same, loading so long before the due time."""
    return settings.model_copy(update={"dispatcher": settings.dispatcher.model_copy(update={"lead_ms": lead_ms})})


async def remove(settings: Settings) -> None:
    """Delete a fleet of ours with all that is in it; what of it was never made is passed over."""
    await asyncio.gather(_remove_keyspace(settings), _remove_topics(settings), _remove_folder(settings))


async def _remove_keyspace(settings: Settings) -> None:
    async with AsyncExitStack() as stack:
        connection = await fleet.open_cassandra(settings, stack)
        await connection.alter(f"DROP KEYSPACE IF EXISTS {settings.cassandra.keyspace}")


async def _remove_topics(settings: Settings) -> None:
    admin = Admin(fleet.connection_of(settings.kafka))
    prefix, give_up = f"{settings.topics.prefix}.", time.monotonic() + GONE_S
    while ours := [name for name in await admin.topics() if name.startswith(prefix)]:
        if time.monotonic() > give_up:
            raise LoadTestFailed(f"topics are still there: {', '.join(ours)}")
        await asyncio.gather(*map(admin.delete, ours))
        await asyncio.sleep(LOOK_S)


async def _remove_folder(settings: Settings) -> None:
    zookeeper = settings.zookeeper
    tree = Tree(zookeeper.chroot)
    connection = await Connection.open(
        ",".join(zookeeper.hosts), settings.dispatcher.session_ms, fleet.zookeeper_security(zookeeper)
    )
    paths = [*map(tree.owner, range(SHARDS)), *map(tree.fence, range(SHARDS)), *reversed(tree.lasting())]
    await connection.ask(*[lambda client, path=path: client.delete_async(path) for path in paths])
    connection.end("all is removed")
    await connection.closed(settings.dispatcher.session_ms)
