"""Do the driver's connections keep to the loop: one piece a turn, whatever the size, and no thread in its way?"""

import asyncio
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from minutewheel.store.cassandra_bridge import Access, CassandraConnection
from minutewheel.store.cassandra_reactor import Deadline, Home, LoopConnection
from minutewheel.store.errors import StoreError


async def in_thread(what: Any) -> None:
    await asyncio.to_thread(what)


async def test_in_the_loops_thread_it_is_called_at_once_in_another_when_the_loop_comes_to_it() -> None:
    home, called = Home(), []
    home.call(called.append, threading.get_ident())
    assert called == [threading.get_ident()]
    await in_thread(lambda: home.call(lambda: called.append(threading.get_ident())))
    await asyncio.sleep(0)
    assert called == [threading.get_ident()] * 2


def test_a_closed_loop_hears_nothing() -> None:
    async def made() -> Home:
        return Home()

    home, called = asyncio.run(made()), []
    thread = threading.Thread(target=lambda: (home.call(called.append, 1), home.call_soon(lambda: called.append(1))))
    thread.start()
    thread.join()
    assert called == []


async def test_a_deadline_comes_unless_it_was_cancelled_in_whichever_thread() -> None:
    home, came = Home(), []
    last = asyncio.Event()
    kept: list[Deadline] = []
    await in_thread(lambda: kept.append(Deadline(home, 0.01, lambda: came.append("of a thread"))))
    gone = [Deadline(home, 0.01, lambda: came.append("cancelled here")) for _ in range(2)]
    gone[0].cancel()
    await in_thread(gone[1].cancel)
    gone.append(await asyncio.to_thread(lambda: Deadline(home, 0.01, lambda: came.append("cancelled before it ran"))))
    gone[2].cancel()
    Deadline(home, 0.03, last.set)
    await last.wait()
    assert came == ["of a thread"]


async def test_a_server_that_hangs_up_at_once_is_told_at_once() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    began = time.monotonic()
    with pytest.raises(StoreError, match=str(port)):
        await CassandraConnection.open(Access(("127.0.0.1",), port, connect_timeout_ms=60_000))
    assert time.monotonic() - began < 30
    server.close()


@pytest.mark.real
async def test_what_is_asked_in_one_turn_leaves_in_one_piece(keyspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = await CassandraConnection.open(keyspace.access)
    select = await connection.prepare("SELECT key FROM system.local")
    sent = []
    send = LoopConnection._send
    monkeypatch.setattr(LoopConnection, "_send", lambda self: (sent.append(len(self._unsent)), send(self)))
    answers = await asyncio.gather(*[connection.read(select.bind(())) for _ in range(100)])
    assert answers == [[("local",)]] * 100
    assert max(sent) > 0.9 * sum(sent), "all hundred, and perhaps a sign of life"
    await connection.close()


@pytest.mark.real
async def test_what_fits_no_buffer_is_sent_and_read_piece_by_piece(keyspace: Any) -> None:
    connection = await CassandraConnection.open(keyspace.access)
    await connection.alter(f"CREATE TABLE {keyspace.name}.large (at int PRIMARY KEY, what blob)")
    put = await connection.prepare(f"INSERT INTO {keyspace.name}.large (at, what) VALUES (?, ?)")
    get = await connection.prepare(f"SELECT what FROM {keyspace.name}.large WHERE at = ?")
    large = [bytes([n]) * 3_000_000 for n in range(6)]
    await asyncio.gather(*[connection.write(put.bind((at, what))) for at, what in enumerate(large)])
    found = await asyncio.gather(*[connection.read(get.bind((at,))) for at in range(len(large))])
    assert found == [[(what,)] for what in large]
    await connection.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """One for 127.0.0.1, signed by itself, and its key."""
    made, key = tmp_path / "c.pem", tmp_path / "k.pem"
    asked = (
        f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=wire -addext subjectAltName=IP:127.0.0.1 -keyout {key}"
    )
    subprocess.run(["openssl", *asked.split(), "-out", str(made)], check=True, capture_output=True)
    return made, key


@pytest.mark.real
async def test_it_speaks_through_tls(keyspace: Any, wire: Any, certificate: tuple[Path, Path]) -> None:
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(*certificate)
    port = await wire.serve(served)
    trusting = ssl.create_default_context(cafile=certificate[0])
    connection = await CassandraConnection.open(Access(("127.0.0.1",), port, ssl_context=trusting))
    columns = await connection.prepare("SELECT table_name, column_name, kind FROM system_schema.columns")
    answers = await asyncio.gather(*[connection.read(columns.bind(())) for _ in range(20)])
    assert len(answers[0]) > 300
    assert answers == [answers[0]] * 20
    await connection.close()
    stranger = ssl.create_default_context()
    with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
        await CassandraConnection.open(Access(("127.0.0.1",), port, ssl_context=stranger))
