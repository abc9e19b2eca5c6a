"""Which servers does a folder hold, where do they listen, and which processes are they?

One JSON file, `state.json`, replaced as a whole. Who changes it holds the folder's turn (an advisory file mark which
the system takes back from a process that dies), so two launchers in one folder wait for each other.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from .errors import ServiceError
from .process import Process

Product = Literal["cassandra", "kafka", "zookeeper"]
PRODUCTS: tuple[Product, ...] = get_args(Product)
FILE = "state.json"


class Placed(Struct, frozen=True):
    """One server of a folder: its product, its place in the cluster (from 1), where it listens, its process."""

    name: str
    product: Product
    place: int
    host: str
    ports: dict[str, int]
    process: Process | None = None
    log_start: int = 0
    """Where in the log its present run begins, in bytes."""

    @property
    def address(self) -> str:
        """Where clients connect: `host:port`."""
        return f"{self.host}:{self.ports['client']}"

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.alive


class State(Struct, frozen=True):
    """All servers of one folder, by name."""

    cluster: bool = False
    servers: dict[str, Placed] = {}

    def of(self, product: Product) -> list[Placed]:
        return [placed for placed in self.servers.values() if placed.product == product]

    def put(self, *changed: Placed) -> "State":
        return msgspec.structs.replace(self, servers={**self.servers, **{placed.name: placed for placed in changed}})


def read_state(folder: Path) -> State:
    """What the folder holds; nothing, if there is no folder."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=State)
    except FileNotFoundError:
        return State()
    except msgspec.MsgspecError as fault:
        raise ServiceError(f"{folder / FILE} is not a state file of this launcher: {fault}") from fault


def write_state(folder: Path, state: State) -> None:
    new = folder / f"{FILE}.{os.getpid()}"
    new.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    new.replace(folder / FILE)


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    """Be the only one that starts or ends servers in `folder`, or that fills it. Waits for its turn."""
    folder.mkdir(parents=True, exist_ok=True)
    # The system's descriptors are not inherited by what is started, so a server never keeps the turn.
    with (folder / "turn").open("w") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        yield
