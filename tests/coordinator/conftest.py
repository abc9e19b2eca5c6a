"""A ZooKeeper of these tests' own, which may be stopped and killed, and a cable to it that can be cut."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from minutewheel.coordinator import new_member_id
from minutewheel.coordinator.port import Membership
from minutewheel.coordinator.zookeeper import ZookeeperCoordinator
from minutewheel.deploy.services import Server, down, server, up

TRANSACTION = 14
"""ZooKeeper's number for a request that is all or nothing."""


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("zookeeper")
    up(["zookeeper"], folder)
    yield server("zookeeper", folder)
    down(folder)


@pytest.fixture
def zookeeper(zookeeper_server: Server) -> Iterator[Server]:
    """It runs when a test begins, whatever the one before did to it."""
    zookeeper_server.start()
    yield zookeeper_server
    if zookeeper_server.stopped:
        zookeeper_server.cont()


@pytest.fixture
async def reach(zookeeper: Server) -> AsyncIterator[Callable[..., "Remembering"]]:
    """Makes coordinators, all under one root of this test's own; all they began is ended after."""
    root = f"/test-{os.urandom(6).hex()}"
    made: list[Remembering] = []

    def reach_it(hosts: str = "", **options: object) -> Remembering:
        given = {"chroot": root, "session_timeout_ms": 5_000, **options}
        made.append(Remembering(hosts or zookeeper.address, **given))  # type: ignore[arg-type]
        return made[-1]

    yield reach_it
    if zookeeper.stopped:
        zookeeper.cont()
    for coordinator in made:
        await coordinator.end_all()


@pytest.fixture
async def wire(zookeeper: Server) -> AsyncIterator["Wire"]:
    laid = Wire(zookeeper.address)
    await laid.lay()
    yield laid
    laid.remove()


class Remembering(ZookeeperCoordinator):
    """Remembers who joined, so that all can be ended."""

    joined: list[Membership]

    async def join(self, member: str = "") -> Membership:
        membership = await super().join(member or fresh())
        self.joined = [*getattr(self, "joined", []), membership]
        return membership

    async def end_all(self) -> None:
        for membership in getattr(self, "joined", []):
            await membership.leave()
        await self.close()


def fresh() -> str:
    return new_member_id("host", os.getpid(), os.urandom(8))


def counted(connection: Any) -> list[Any]:
    """The requests that are sent through it from now on."""
    sent: list[Any] = []
    ask = connection.ask

    async def counting(*requests: Any) -> Any:
        sent.extend(requests)
        return await ask(*requests)

    connection.ask = counting
    return sent


class Wire:
    """A cable to a ZooKeeper. It can be cut, and it can lose the answers after a transaction was passed on."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._deaf = False
        self.loses_the_next_answer = False
        self.address = ""

    async def lay(self) -> None:
        """Again at the same address, if it was laid before."""
        port = int(self.address.rpartition(":")[2] or 0)
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Whoever tries again is connected again, and heard."""
        self._deaf = self.loses_the_next_answer = False
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    def remove(self) -> None:
        self._server.close()
        self.cut()

    async def _connected(self, near: asyncio.StreamReader, near_end: asyncio.StreamWriter) -> None:
        far, far_end = await asyncio.open_connection(self._host, int(self._port))
        self._ends |= {near_end, far_end}
        for carrying in (self._requests(near, far_end), self._answers(far, near_end)):
            task = asyncio.create_task(until_cut(carrying, near_end, far_end))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _requests(self, near: asyncio.StreamReader, far_end: asyncio.StreamWriter) -> None:
        while True:
            length = await near.readexactly(4)
            request = await near.readexactly(int.from_bytes(length, "big"))
            if self.loses_the_next_answer and int.from_bytes(request[4:8], "big") == TRANSACTION:
                self._deaf = True
            far_end.write(length + request)

    async def _answers(self, far: asyncio.StreamReader, near_end: asyncio.StreamWriter) -> None:
        while some := await far.read(65_536):
            if not self._deaf:
                near_end.write(some)


async def until_cut(carrying: Awaitable[None], *ends: asyncio.StreamWriter) -> None:
    try:
        await carrying
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        for end in ends:
            end.transport.abort()
