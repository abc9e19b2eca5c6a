"""What all tests share: the real services on demand, and the option that leaves out the tests that need them.

A test marked `real` takes the fixture `services` and asks it for addresses; asking starts a service that does not run.
Services that ran before are left running, the others end with the session. With xdist each worker has a fixture of its
own, so what a worker started is handed to the controller, which ends it when all workers are done.
"""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import settings
from kazoo.client import KazooClient
from minutewheel.deploy.services import OnDemand, Product, ServiceError, default_folder, down
from minutewheel.settings import Settings, load
from minutewheel.store.cassandra_bridge import Access, CassandraConnection
from minutewheel.store.cassandra_schema import apply_schema
from minutewheel.wiring import set_up

# How long an example takes says more of the machine's other work than of ours.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

STARTED = pytest.StashKey[list[str]]()
LEFT_OUT = pytest.StashKey[int]()


class Services(OnDemand):
    """A test that needs what can't be started fails, in one line, and the next one fails with the same at once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.faults: dict[str, str] = {}

    def _address(self, product: Product) -> str:
        if product not in self.faults:
            try:
                return super()._address(product)
            except ServiceError as fault:
                self.faults[product] = str(fault)
        pytest.fail(self.faults[product], pytrace=False)


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Iterator[Services]:
    made = Services(default_folder())
    yield made
    pytestconfig.stash[STARTED] += made.started


class Keyspace(NamedTuple):
    access: Access
    name: str


@pytest.fixture(scope="module")
def keyspace(services: Services) -> Iterator[Keyspace]:
    """A keyspace of this module's own, with its tables: what another has set up is not begun anew."""
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


@dataclass(frozen=True)
class Fleet:
    """A fleet of this test's own on the real services, set up; its name is that of its topics, keyspace and folder."""

    name: str
    config: Path
    kafka: str

    def settings(self, **flags: object) -> Settings:
        return load(dict(flags), self.config).settings


FLEET = """\
mode = "real"
[topics]
prefix = "{name}"
[cassandra]
hosts = "{cassandra}"
security = "plaintext"
keyspace = "{name}"
replication = 1
[kafka]
bootstrap = "{kafka}"
security = "plaintext"
replication = 1
[zookeeper]
hosts = "{zookeeper}"
security = "plaintext"
chroot = "/{name}"
"""


@pytest.fixture(scope="module")
def unset_fleet(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """The settings of a fleet that nobody has set up. What is made of it is removed at the end."""
    name = f"fleet_{secrets.token_hex(4)}"
    config = tmp_path_factory.mktemp("fleet") / "minutewheel.toml"
    addresses = {"cassandra": services.cassandra, "kafka": services.kafka, "zookeeper": services.zookeeper}
    config.write_text(FLEET.format(name=name, **addresses))
    fleet = Fleet(name, config, services.kafka)
    yield fleet
    asyncio.run(_removed(fleet))


@pytest.fixture(scope="module")
def fleet(unset_fleet: Fleet) -> Fleet:
    asyncio.run(set_up(unset_fleet.settings()))
    return unset_fleet


async def _removed(fleet: Fleet) -> None:
    from minutewheel import fleet as parts

    settings = fleet.settings()
    async with AsyncExitStack() as stack:
        connection = await parts.open_cassandra(settings, stack)
        await connection.alter(f"DROP KEYSPACE IF EXISTS {fleet.name}")
    admin = AdminClient({"bootstrap.servers": fleet.kafka})
    mine = [topic for topic in admin.list_topics(timeout=10).topics if topic.startswith(f"{fleet.name}.")]
    if mine:
        for deleted in admin.delete_topics(mine).values():
            deleted.result()
    zookeeper = KazooClient(",".join(settings.zookeeper.hosts))
    zookeeper.start()
    zookeeper.delete(f"/{fleet.name}", recursive=True)
    zookeeper.stop()
    zookeeper.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--embedded-only", action="store_true", help="leave out the tests that need the real services")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[STARTED] = []
    config.stash[LEFT_OUT] = 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("embedded_only"):
        return
    real = [item for item in items if item.get_closest_marker("real")]
    config.hook.pytest_deselected(items=real)
    config.stash[LEFT_OUT] = len(real)
    items[:] = [item for item in items if not item.get_closest_marker("real")]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("embedded_only"):
        terminalreporter.write_line(f"--embedded-only: left out {config.stash[LEFT_OUT]} tests of the real services")


def pytest_sessionfinish(session: pytest.Session) -> None:
    stash = session.config.stash
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput.update(started=stash[STARTED], left_out=stash[LEFT_OUT])
    elif stash[STARTED]:
        down(default_folder(), stash[STARTED])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Of a worker that crashed nothing is known, and what it started is left running."""
    if not error:
        node.config.stash[STARTED] += node.workeroutput["started"]
        node.config.stash[LEFT_OUT] = node.workeroutput["left_out"]
