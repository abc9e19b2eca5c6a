"""What the tests of the Cassandra twin share: a connection to the keyspace, and a wire that can be held or cut."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from minutewheel.store.cassandra_bridge import Access, CassandraConnection


class Wire:
    """A TCP relay before the server: what is sent to it can be held back, and its answers lost."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._open = asyncio.Event()
        self._open.set()
        self._lose_answers = False
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.held = asyncio.Event()
        self.cut = asyncio.Event()

    async def serve(self, tls: ssl.SSLContext | None = None) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    def hold(self) -> None:
        """Keep back what is sent from now on; `held` says that there is something."""
        self._open.clear()
        self.held.clear()

    def release(self) -> None:
        self._open.set()

    def lose_next_answer(self) -> None:
        """The next answer ends its connection instead of arriving; `cut` says that it did."""
        self._lose_answers = True
        self.cut.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._target)
        self._writers |= {writer, far_writer}
        for pump in (self._send(reader, far_writer), self._answer(far_reader, writer, far_writer)):
            task = asyncio.create_task(pump)
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _send(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if not self._open.is_set():
                    self.held.set()
                    await self._open.wait()
                to.write(data)
                await to.drain()
        to.close()

    async def _answer(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if self._lose_answers:
                    self._lose_answers = False
                    far.close()
                    self.cut.set()
                    break
                to.write(data)
                await to.drain()
        to.close()


@pytest.fixture
async def connection(keyspace: Any) -> AsyncIterator[CassandraConnection]:
    connection = await CassandraConnection.open(keyspace.access)
    yield connection
    await connection.close()


@pytest.fixture
async def wire(keyspace: Any) -> AsyncIterator[Wire]:
    wire = Wire(keyspace.access.contact_points[0], keyspace.access.port)
    yield wire
    await wire.close()


@pytest.fixture
async def wired(wire: Wire) -> AsyncIterator[CassandraConnection]:
    """A connection through the wire."""
    connection = await CassandraConnection.open(Access(("127.0.0.1",), await wire.serve()))
    yield connection
    wire.release()
    await connection.close()
