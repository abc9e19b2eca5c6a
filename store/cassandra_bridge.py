"""How does an event loop speak to Cassandra, whose driver knows nothing of it?

A request is encoded in the loop and leaves with all others of the same turn; its answer is read in the loop too, with
all others that have come meanwhile (see `cassandra_reactor`). The number of requests in flight is bounded, so that the
driver never has to wait for a free stream in the loop's thread.

No statement is ever sent twice by itself: no retry policy, no speculative execution, and timestamps are the store's
or the server's, never this machine's. Errors leave here as the port's.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from cassandra import ConsistencyLevel, DriverException, UnresolvableContactPoints
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import (
    DCAwareRoundRobinPolicy,
    ExponentialReconnectionPolicy,
    FallthroughRetryPolicy,
    TokenAwarePolicy,
)
from cassandra.query import tuple_factory

from .cassandra_errors import classified, worst
from .cassandra_reactor import Home, connections_at
from .errors import NotApplied, StoreError

T = TypeVar("T")
R = TypeVar("R")

Row = tuple[Any, ...]
Statement = Any
"""A bound statement or a batch of the driver's, which is untyped."""

AT_ONCE = 8
"""Statements of one call that are built and sent before the first is answered: some milliseconds of the loop."""
RECONNECT_FIRST_S, RECONNECT_CAP_S = 0.5, 4.0
HEARTBEAT_S = 10
PROTOCOL = 4
"""Cassandra 4.0 and later. Named, so that nothing is tried and refused first."""
DRIVER_LOGS = ("cassandra.cluster", "cassandra.connection", "cassandra.pool")


@dataclass(frozen=True)
class Access:
    """How a cluster is reached. `local_dc` None is the data centre of the first contact point that answers.

    `request_timeout_ms` stands above the server's own timeouts (2 s), so that its answer is heard.
    """

    contact_points: tuple[str, ...]
    port: int = 9042
    local_dc: str | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    ssl_context: ssl.SSLContext | None = field(default=None, repr=False)
    request_timeout_ms: int = 5_000
    connect_timeout_ms: int = 5_000
    in_flight_max: int = 256


class CassandraConnection:
    """One process's connection to a cluster, for one event loop. A store and a ledger may share it."""

    def __init__(self, cluster: Any, session: Any, home: Home, in_flight_max: int) -> None:
        self._cluster = cluster
        self._session = session
        self._home = home
        self._slots = asyncio.Semaphore(in_flight_max)
        self._closed = False

    @classmethod
    async def open(cls, access: Access) -> Self:
        """Connect, in a thread. `StoreError` if no server answers or the credentials are refused."""
        home = Home()
        connecting = asyncio.ensure_future(asyncio.to_thread(_connect, access, home))
        try:
            cluster, session = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_abandon)
            raise
        except (NoHostAvailable, DriverException, UnresolvableContactPoints, OSError) as error:
            where = ", ".join(f"{host}:{access.port}" for host in access.contact_points)
            raise StoreError(f"no connection to Cassandra at {where}: {error}"[:500]) from error
        return cls(cluster, session, home, access.in_flight_max)

    async def close(self) -> None:
        """End all connections; what is in flight is lost, and whatever is asked later is `NotApplied`."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._cluster.shutdown)

    async def prepare(self, cql: str, *, serial: bool = False) -> Any:
        """Prepare a statement; `serial` for a read that sees all conditional writes. `StoreError` if it is refused."""
        try:
            prepared = await asyncio.to_thread(self._session.prepare, cql)
        except Exception as error:
            raise classified(error, reads=True) from error
        if serial:
            prepared.consistency_level = ConsistencyLevel.LOCAL_SERIAL
        prepared.is_idempotent = False  # nothing may be sent again but by the store itself
        return prepared

    async def write(self, statement: Statement) -> None:
        """Perform a plain write. `NotApplied` or `UnknownOutcome`."""
        await self._execute(statement, reads=False)

    async def write_if(self, statement: Statement) -> bool:
        """Perform a conditional write: was it applied? `NotApplied` or `UnknownOutcome`."""
        rows, _ = await self._execute(statement, reads=False)
        return rows[0][0] is True

    async def page(self, statement: Statement, paging_state: bytes | None = None) -> tuple[list[Row], bytes | None]:
        """One page, and where the next begins: None at the end, which an empty page alone is not."""
        return await self._execute(statement, reads=True, paging_state=paging_state)

    async def read(self, statement: Statement) -> list[Row]:
        """All rows, page by page."""
        rows, paging_state = await self.page(statement)
        while paging_state is not None:
            more, paging_state = await self.page(statement, paging_state)
            rows += more
        return rows

    async def alter(self, cql: str) -> None:
        """Change the schema, and wait until all members of the cluster agree. For `setup`, not for daily work."""
        try:
            await asyncio.to_thread(self._session.execute, cql, timeout=60.0)
        except Exception as error:
            raise classified(error, reads=False) from error

    async def _execute(
        self, statement: Statement, *, reads: bool, paging_state: bytes | None = None
    ) -> tuple[list[Row], bytes | None]:
        try:
            return await self._ask(statement, paging_state)
        except StoreError:
            raise
        except Exception as error:
            raise classified(error, reads=reads) from error

    async def _ask(self, statement: Statement, paging_state: bytes | None) -> tuple[list[Row], bytes | None]:
        """Raise what the driver raises; `NotApplied` for what failed on the way out."""
        if self._closed:
            raise NotApplied("the connection is closed")
        await self._slots.acquire()
        answered: asyncio.Future[tuple[list[Row], bytes | None]] = self._home.loop.create_future()
        try:
            asked = self._session.execute_async(statement, paging_state=paging_state)
        except Exception as error:
            self._slots.release()
            raise classified(error, reads=True) from error
        tell = self._home.call
        asked.add_callbacks(
            callback=lambda rows: tell(self._settle, answered, rows, asked._paging_state, None),  # noqa: SLF001 - it has no other name
            errback=lambda error: tell(self._settle, answered, None, None, error),
        )
        return await answered

    def _settle(
        self,
        answered: "asyncio.Future[tuple[list[Row], bytes | None]]",
        rows: list[Row] | None,
        paging_state: bytes | None,
        error: Exception | None,
    ) -> None:
        """A request is in flight until it is answered, also when nobody waits for it any more."""
        self._slots.release()
        if answered.done():
            return
        if error is None:
            answered.set_result((rows or [], paging_state))
        else:
            answered.set_exception(error)


async def all_of(work: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """Do the work for all items, some at once; the answers in their order. The first failure starts no more.

    `NotApplied` only if none was done.
    """
    if len(items) == 1:
        return [await work(items[0])]
    answers: dict[int, R] = {}
    failures: list[StoreError] = []
    waiting = iter(enumerate(items))

    async def some() -> None:
        for at, item in waiting:
            try:
                answers[at] = await work(item)
            except StoreError as error:
                failures.append(error)
            if failures:
                return

    async with asyncio.TaskGroup() as group:
        for _ in range(min(AT_ONCE, len(items))):
            group.create_task(some())
    if failures:
        raise worst(failures, any_done=bool(answers))
    return [answers[at] for at in range(len(items))]


def _connect(access: Access, home: Home) -> tuple[Any, Any]:
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(local_dc=access.local_dc or "")),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=access.request_timeout_ms / 1_000,
        row_factory=tuple_factory,
    )
    _quieten_driver()
    cluster = Cluster(
        protocol_version=PROTOCOL,
        contact_points=list(access.contact_points),
        port=access.port,
        auth_provider=PlainTextAuthProvider(access.username, access.password) if access.username else None,
        ssl_context=access.ssl_context,
        connection_class=connections_at(home),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ExponentialReconnectionPolicy(RECONNECT_FIRST_S, RECONNECT_CAP_S),
        connect_timeout=access.connect_timeout_ms / 1_000,
        control_connection_timeout=access.connect_timeout_ms / 1_000,
        idle_heartbeat_interval=HEARTBEAT_S,
        idle_heartbeat_timeout=HEARTBEAT_S,
        monitor_reporting_enabled=False,
    )
    try:
        session = cluster.connect()
    except BaseException:
        cluster.shutdown()
        raise
    session.use_client_timestamp = False
    return cluster, session


def _quieten_driver() -> None:
    """Of what the driver logs keep the warnings, each in one line."""
    logging.getLogger("cassandra").setLevel(logging.WARNING)
    for name in DRIVER_LOGS:
        logging.getLogger(name).addFilter(in_one_line)


def in_one_line(record: logging.LogRecord) -> bool:
    """A filter for the driver's logs: the error's text in the place of its traceback."""
    if record.exc_info and record.exc_info[1] is not None:
        record.msg, record.args, record.exc_info = f"{record.getMessage()} {record.exc_info[1]!r}", (), None
    return True


def _abandon(connecting: "asyncio.Future[tuple[Any, Any]]") -> None:
    """Nobody waits for this connection any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        cluster, _ = connecting.result()
        connecting.get_loop().run_in_executor(None, cluster.shutdown)
