"""Does a server answer its own protocol? One exchange over a plain socket, without a driver.

- ZooKeeper: the words `ruok` and `srvr`; the second names the server's mode only once a quorum serves.
- Kafka: a `Metadata` request; a broker is named in the answer once it may lead partitions.
- Cassandra: `STARTUP`, then how many other servers it knows.

Each says no, rather than raising, when nobody listens, the answer is another, or none comes in time.
"""

import socket
import struct
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

Asked = ParamSpec("Asked")

TIMEOUT_S = 2.0

CQL_VERSION = 0x04
CQL_STARTUP, CQL_READY, CQL_QUERY, CQL_RESULT = 0x01, 0x02, 0x07, 0x08
CQL_STARTUP_BODY = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0"
CQL_SELF = b"SELECT key FROM system.local"
CQL_OTHERS = b"SELECT count(*) FROM system.peers_v2"
CQL_ONE = 1

METADATA, NO_TOPICS = 3, 0
CORRELATION = 7


def quiet(probe: Callable[Asked, bool]) -> Callable[Asked, bool]:
    """Nobody there, or no sense in what is said: the answer is no."""

    @wraps(probe)
    def asked(*args: Asked.args, **kwargs: Asked.kwargs) -> bool:
        try:
            return probe(*args, **kwargs)
        except (OSError, struct.error):
            return False

    return asked


@quiet
def zookeeper_serves(host: str, port: int) -> bool:
    return _word(host, port, b"ruok") == b"imok" and b"Mode: " in _word(host, port, b"srvr")


@quiet
def kafka_serves(host: str, port: int) -> bool:
    request = struct.pack(">hhihi", METADATA, 1, CORRELATION, -1, NO_TOPICS)
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", _read(connection, 4))
        correlation, brokers = struct.unpack(">ii", _read(connection, length)[:8])
    return bool(correlation == CORRELATION and brokers > 0)


@quiet
def cassandra_serves(host: str, port: int, *, others: int = 0) -> bool:
    """Whether it takes statements, and knows that many other servers."""
    statement = CQL_OTHERS if others else CQL_SELF
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        if _cql(connection, CQL_STARTUP, CQL_STARTUP_BODY)[0] != CQL_READY:
            return False
        query = struct.pack(">i", len(statement)) + statement + struct.pack(">hB", CQL_ONE, 0)
        kind, body = _cql(connection, CQL_QUERY, query)
    if kind != CQL_RESULT:
        return False
    # The count is the one row's one value and stands last: a bigint.
    return not others or bool(struct.unpack(">q", body[-8:])[0] >= others)


def _word(host: str, port: int, word: bytes) -> bytes:
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def _cql(connection: socket.socket, kind: int, body: bytes) -> tuple[int, bytes]:
    connection.sendall(struct.pack(">BBhBi", CQL_VERSION, 0, 0, kind, len(body)) + body)
    _, _, _, answered, length = struct.unpack(">BBhBi", _read(connection, 9))
    return answered, _read(connection, length)


def _read(connection: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes, or as many as came before the end."""
    read = b""
    while len(read) < count and (more := connection.recv(count - len(read))):
        read += more
    return read
