"""Which implementations does an installation have, and how are its parts put together?

The one module that picks: `opened` gives the embedded set (SQLite store, ledger and broker, the local coordinator) of
a data folder, or the real one (Cassandra, Kafka, ZooKeeper) of a fleet. It is chosen as a whole: `mode` is one setting,
and no part can be swapped for another's. Nothing else in the package names a twin, and none is loaded before it is
opened here.

    <data>/store.sqlite      tasks, buckets, progress, declared queues
    <data>/ledger.sqlite     which filings have run
    <data>/broker.sqlite     the topics
    <data>/coordinator/      who dispatches from this folder

The first opening sets a folder up; a fleet is set up by `minutewheel setup`. Several processes may have one folder
open, but only one may dispatch from it.
"""

import os
import platform
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from .broker import limits as door
from .broker.command import Code, InvalidTask
from .broker.port import Broker
from .broker.submission import Decoder
from .broker.wire import Topics
from .coordinator import Coordinator, LocalCoordinator, new_member_id
from .dispatcher.clock import SystemClock
from .dispatcher.context import Limits
from .dispatcher.dispatcher import Dispatcher
from .dispatcher.memory import Budget
from .dispatcher.queues import Queues
from .settings import Section, Settings
from .store.errors import NotApplied
from .store.port import Catalog, Ledger, Queue, Store
from .store.position import pack_position
from .store.task import SHARDS, minute_of
from .worker import App, AsyncClient, Client, Loop, Worker, WorkerLimits

if TYPE_CHECKING:
    from .broker.sqlite import SqliteBroker
    from .store.cassandra_bridge import CassandraConnection
    from .store.sqlite import SqliteStore
    from .store.sqlite_connection import Synchronous
    from .store.sqlite_ledger import SqliteLedger


class NoDataFolder(Exception):
    """There is no data folder where one was to be looked at."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"there is no data folder {folder}: start `minutewheel dev` there, or name another (--data)")
        self.folder = folder


class NotSetUp(Exception):
    """The services of a fleet are there, and nothing of ours is in them."""

    def __init__(self) -> None:
        super().__init__("this fleet is not set up: `minutewheel setup` makes its topics and tables")


class WholeStore(Store, Catalog, Protocol):
    """The tables of the dispatchers, and the declarations."""


class Installation:
    """All parts, in one event loop. Made by `opened`, which closes what it opened. `place` is what people call it."""

    def __init__(
        self,
        settings: Settings,
        place: str,
        store: WholeStore,
        ledger: Ledger,
        broker: Broker,
        coordinator: Coordinator,
    ) -> None:
        self.settings = settings
        self.place = place
        self.topics = Topics(settings.topics.prefix)
        self.limits = door.Limits(**settings.limits.model_dump())
        self.clock = SystemClock()
        self.store = store
        self.ledger = ledger
        self.broker = broker
        self.coordinator = coordinator
        self._declared: frozenset[str] = frozenset()

    def dispatcher(self) -> Dispatcher:
        return Dispatcher(
            store=self.store,
            catalog=self.store,
            broker=self.broker,
            coordinator=self.coordinator,
            member=new_member_id(platform.node(), os.getpid(), os.urandom(8)),
            clock=self.clock,
            decoder=Decoder(self.limits, self.topics),
            queues=Queues(declares=self.settings.declare_queues),
            topics=self.topics,
            limits=dispatcher_limits(self.settings),
            budget=Budget(self.settings.memory.tasks_max, self.settings.memory.bytes_max),
        )

    def worker(self, app: App) -> Worker:
        return Worker(app, self.broker, self.ledger, topics=self.topics, limits=worker_limits(self.settings))

    def client(self) -> AsyncClient:
        undeclared = self.settings.declare_queues
        return AsyncClient(
            self.broker,
            self.store,
            self.store,
            self.ledger,
            topics=self.topics,
            limits=self.limits,
            undeclared=undeclared,
        )

    async def check_queue(self, name: str) -> None:
        """`InvalidTask` for a queue that no submission may name here."""
        if not self.settings.declare_queues and name not in self._declared:
            self._declared = frozenset(queue.name for queue in await self.store.queues())
            if name not in self._declared:
                raise InvalidTask(Code.UNKNOWN_QUEUE, f"nobody has declared a queue {name!r}", "queue")

    async def declare(self, names: Iterable[str]) -> None:
        """Declare those queues that are not, and make their topics. What is declared stays as it is."""
        known = {queue.name for queue in await self.store.queues()}
        missing = sorted(set(names) - known)
        if missing:
            await self.broker.create_topics({self.topics.due(name): SHARDS for name in missing})
            for name in missing:
                await self.store.put_queue(Queue(name))

    async def forget(self) -> None:
        """Delete what is past its retention, where the services don't do so by themselves."""

    async def set_up(self) -> None:
        """Make the topics, and let each shard begin at the present minute and the starts of its logs. Repeatable."""
        await self.broker.create_topics(dict.fromkeys(self.topics.fixed, SHARDS))
        bounds = [await self.broker.bounds(topic, range(SHARDS)) for topic in self.topics.logs]
        submit, forwarded, outcomes = (
            [pack_position(bound.incarnation, bound.start) for bound in partitions] for partitions in bounds
        )
        starts = list(zip(submit, forwarded, outcomes, strict=True))
        await self.store.set_up(minute_of(self.clock.now_ms()), starts)

    async def is_set_up(self) -> bool:
        try:
            await self.store.progress(SHARDS - 1, -1)
        except NotApplied:
            return False
        return True


class Embedded(Installation):
    """All parts over one data folder."""

    def __init__(
        self, settings: Settings, store: "SqliteStore", ledger: "SqliteLedger", broker: "SqliteBroker"
    ) -> None:
        coordinator = LocalCoordinator.on_disk(settings.data, session_timeout_ms=settings.dispatcher.session_ms)
        super().__init__(settings, str(settings.data.resolve()), store, ledger, broker, coordinator)
        self._prunes = store, ledger, broker

    async def forget(self) -> None:
        """Delete what is past its retention. A log whose records are not all applied is left as it is."""
        now_ms, keep = self.clock.now_ms(), self.settings.retention
        store, ledger, broker = self._prunes
        await store.prune(now_ms, keep.tasks_ms)
        await ledger.prune(now_ms - keep.ledger_ms)
        applied = await self._all_applied()
        for topic in await broker.topics():
            if applied or topic not in self.topics.logs:
                await broker.trim(topic, now_ms - keep.due_ms)

    async def _all_applied(self) -> bool:
        """Have all owners applied all that the three logs hold now?"""
        bounds = [await self.broker.bounds(topic, range(SHARDS)) for topic in self.topics.logs]
        for shard, ends in enumerate(zip(*bounds, strict=True)):
            offsets = (await self.store.progress(shard, -1)).offsets
            if any(at < pack_position(end.incarnation, end.end) for at, end in zip(offsets, ends, strict=True)):
                return False
        return True


@asynccontextmanager
async def opened(settings: Settings, *, create: bool = True) -> AsyncIterator[Installation]:
    """Open the installation that the settings describe.

    Without `create`, `NoDataFolder` if there is none yet. A fleet is never created here: `NotSetUp`.
    """
    async with AsyncExitStack() as stack:
        if settings.mode == "real":
            yield await _open_real(settings, stack)
        else:
            yield await _open_embedded(settings, stack, create=create)


async def _open_embedded(settings: Settings, stack: AsyncExitStack, *, create: bool) -> Embedded:
    from .broker.sqlite import SqliteBroker
    from .store.sqlite import SqliteStore
    from .store.sqlite_connection import OneThread
    from .store.sqlite_ledger import SqliteLedger

    folder = settings.data
    if not create and not (folder / "store.sqlite").is_file():
        raise NoDataFolder(folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    synchronous: Synchronous = "FULL" if settings.durability == "power" else "NORMAL"
    names = ("store", "store-reader", "ledger", "broker")
    write, look_up, ledger_call, broker_call = [
        await stack.enter_async_context(OneThread(f"minutewheel-{name}")) for name in names
    ]
    store = await SqliteStore.open(str(folder / "store.sqlite"), write, look_up, synchronous=synchronous)
    stack.push_async_callback(store.close)
    ledger = await SqliteLedger.open(str(folder / "ledger.sqlite"), ledger_call, synchronous=synchronous)
    stack.push_async_callback(ledger.close)
    broker = await SqliteBroker.open(
        str(folder / "broker.sqlite"),
        broker_call,
        SystemClock().now_ms,
        synchronous=synchronous,
        max_message_bytes=settings.broker.max_message_bytes,
        session_ms=settings.broker.session_ms,
    )
    stack.push_async_callback(broker.close)
    installation = Embedded(settings, store, ledger, broker)
    if create and not await installation.is_set_up():
        await installation.set_up()
    if create:
        await installation.declare(settings.queues)
    return installation


async def _open_real(settings: Settings, stack: AsyncExitStack) -> Installation:
    from . import fleet

    connection = await fleet.open_cassandra(settings, stack)
    installation = await _real_parts(settings, stack, connection, await fleet.open_broker(settings, stack))
    if not await installation.is_set_up():
        raise NotSetUp
    await installation.declare(settings.queues)
    return installation


async def _real_parts(
    settings: Settings, stack: AsyncExitStack, connection: "CassandraConnection", broker: Broker
) -> Installation:
    from . import fleet

    return Installation(
        settings,
        f"the fleet {settings.topics.prefix} at {', '.join(settings.kafka.bootstrap)}",
        await fleet.open_store(settings, connection),
        await fleet.open_ledger(settings, connection),
        broker,
        fleet.open_coordinator(settings, stack),
    )


async def set_up(settings: Settings) -> None:
    """Make the tables and topics of a fleet, and let each shard begin at the present minute. Repeatable."""
    from . import fleet

    async with AsyncExitStack() as stack:
        connection = await fleet.open_cassandra(settings, stack)
        await fleet.set_up_cassandra(settings, connection)
        installation = await _real_parts(settings, stack, connection, await fleet.open_broker(settings, stack))
        await installation.set_up()
        await installation.declare(settings.queues)


async def faults(settings: Settings) -> list[str]:
    """What is missing or wrong in the tables and topics of a fleet, a sentence each."""
    from . import fleet

    async with AsyncExitStack() as stack:
        connection = await fleet.open_cassandra(settings, stack)
        if found := await fleet.cassandra_faults(settings, connection):
            return found
        broker = await fleet.open_broker(settings, stack)
        installation = await _real_parts(settings, stack, connection, broker)
        queues = [queue.name for queue in await installation.store.queues()]
        found = await fleet.topic_faults(settings, broker, queues)
        if not await installation.is_set_up():
            found.append("the shards have not begun: `minutewheel setup` lets them")
        return found


@contextmanager
def connected(settings: Settings, *, create: bool = True) -> Iterator[Client]:
    """A client of the installation for a program without an event loop."""
    loop = Loop()
    stack = AsyncExitStack()
    try:
        installation = loop.call(stack.enter_async_context(opened(settings, create=create)))
        yield Client(installation.client(), loop)
        loop.call(stack.aclose())
    finally:
        loop.close()


def dispatcher_limits(settings: Settings) -> Limits:
    return Limits(**_named(settings.dispatcher, Limits))


def worker_limits(settings: Settings) -> WorkerLimits:
    return WorkerLimits(**_named(settings.worker, WorkerLimits))


def _named(section: Section, limits: type[msgspec.Struct]) -> dict[str, int]:
    """The values of those settings that are limits of the same name."""
    return {name: getattr(section, name) for name in limits.__struct_fields__}
