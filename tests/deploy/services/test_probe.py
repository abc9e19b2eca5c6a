"""The probes against a listener that says what a test lets it say. Against the real servers they run at each start."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from minutewheel.deploy.services.probe import cassandra_serves, kafka_serves, zookeeper_serves

pytestmark = pytest.mark.pure

Answer = Callable[[bytes], bytes]
READY, RESULT, ERROR = 2, 8, 0


@contextmanager
def listening(answer: Answer, *, connections: int = 1, requests: int = 1) -> Iterator[tuple[str, int]]:
    """A server that answers each request and closes a connection after so many."""

    def serve() -> None:
        for _ in range(connections):
            connection, _ = server.accept()
            with connection:
                for _ in range(requests):
                    connection.sendall(answer(connection.recv(4096)))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=serve)
        thread.start()
        yield server.getsockname()
        thread.join()


def cql(kind: int, body: bytes = b"") -> bytes:
    return struct.pack(">BBhBi", 0x84, 0, 0, kind, len(body)) + body


def cassandra(*, others: int) -> Answer:
    return lambda request: cql(READY) if request[4] == 1 else cql(RESULT, b"rows" + struct.pack(">q", others))


def test_nobody_there_is_a_no() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    assert not zookeeper_serves(host, port)
    assert not kafka_serves(host, port)
    assert not cassandra_serves(host, port)


@pytest.mark.parametrize(
    ("ruok", "srvr", "serves"),
    [
        (b"imok", b"Zookeeper version: 3.9.5\nMode: standalone\n", True),
        (b"imok", b"This ZooKeeper instance is not currently serving requests\n", False),
        (b"imok", b"", False),
    ],
)
def test_zookeeper_serves_when_it_names_its_mode(ruok: bytes, srvr: bytes, *, serves: bool) -> None:
    with listening({b"ruok": ruok, b"srvr": srvr}.__getitem__, connections=2) as (host, port):
        assert zookeeper_serves(host, port) is serves


def test_zookeeper_with_another_word_is_a_no() -> None:
    with listening(lambda _: b"what?") as (host, port):
        assert not zookeeper_serves(host, port)


@pytest.mark.parametrize(
    ("answer", "serves"),
    [
        (struct.pack(">iii", 8, 7, 1), True),
        (struct.pack(">iii", 8, 7, 0), False),
        (struct.pack(">iii", 8, 8, 1), False),
        (struct.pack(">ii", 8, 7), False),
        (b"", False),
    ],
)
def test_kafka_serves_when_a_broker_is_among_those_that_it_names(answer: bytes, *, serves: bool) -> None:
    with listening(lambda _: answer) as (host, port):
        assert kafka_serves(host, port) is serves


def test_cassandra_serves_when_it_takes_a_statement() -> None:
    with listening(cassandra(others=0), requests=2) as (host, port):
        assert cassandra_serves(host, port)


@pytest.mark.parametrize(("knows", "serves"), [(2, True), (1, False)])
def test_cassandra_serves_in_a_cluster_when_it_knows_the_others(knows: int, *, serves: bool) -> None:
    with listening(cassandra(others=knows), requests=2) as (host, port):
        assert cassandra_serves(host, port, others=2) is serves


def test_cassandra_that_refuses_the_statement_is_a_no() -> None:
    with listening(lambda request: cql(READY) if request[4] == 1 else cql(ERROR), requests=2) as (host, port):
        assert not cassandra_serves(host, port)


@pytest.mark.parametrize("answer", [b"", b"\x84\x00", cql(ERROR)])
def test_cassandra_with_half_an_answer_or_an_error_is_a_no(answer: bytes) -> None:
    with listening(lambda _: answer) as (host, port):
        assert not cassandra_serves(host, port)
