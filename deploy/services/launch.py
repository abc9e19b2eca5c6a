"""How does a folder get its servers, and lose them again: `up`, `status`, `down`?

Alone, a product has one server, on 127.0.0.1, with the product's name. In a cluster, Cassandra and ZooKeeper have
three, on 127.0.0.1 to 127.0.0.3, numbered from 1; Kafka has one in both.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from .errors import ServiceError
from .ports import choose_ports, is_free
from .server import RECIPES, Server
from .state import PRODUCTS, Placed, Product, State, read_state, turn, write_state

HOST = "127.0.0.1"
CLUSTER_HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
CLUSTERED: frozenset[Product] = frozenset({"cassandra", "zookeeper"})


class Addresses(Struct, frozen=True):
    """Where clients connect: `host:port`, several with commas between; empty for a product that the folder lacks."""

    cassandra: str = ""
    kafka: str = ""
    zookeeper: str = ""
    started: tuple[str, ...] = ()
    """The servers that this `up` started; those that ran before are not among them."""


class Answered(Struct, frozen=True):
    """One server, as `status` finds it."""

    name: str
    address: str
    state: str
    """`serving`, `starting`, `stopped` (SIGSTOP) or `down`."""
    pid: int | None
    log: str


def default_folder() -> Path:
    """Where servers are kept if nothing else is said: MINUTEWHEEL_SERVICES, or `.services` in the checkout."""
    place = os.environ.get("MINUTEWHEEL_SERVICES")
    return Path(place).expanduser() if place else Path(__file__).parents[2] / ".services"


def up(names: Iterable[Product], folder: Path, *, cluster: bool = False) -> Addresses:
    """Start what of `names` does not run in `folder`, and wait until all of them serve.

    Raises `ServiceError` when Java or Maven lacks, or a server does not come up; those that did are left running.
    """
    folder = folder.resolve()
    wanted = [product for product in PRODUCTS if product in set(names)]
    with turn(folder):
        state = _placed(read_state(folder), wanted, cluster=cluster, folder=folder)
        write_state(folder, state)
        started: list[str] = []
        for wave in _waves([placed for product in wanted for placed in state.of(product)]):
            servers = [Server(placed.name, folder) for placed in wave]
            for one in servers:
                if not one.running:
                    one.launch()
                    started.append(one.name)
            for one in servers:
                one.wait_ready()
    return replace(addresses(folder), started=tuple(started))


def down(folder: Path, names: Iterable[str] | None = None) -> list[str]:
    """End the servers of `folder` (or those called so); their data and logs stay. Gives the names of those ended."""
    folder = folder.resolve()
    if not folder.is_dir():
        return []
    with turn(folder):
        chosen = [Server(name, folder) for name in (read_state(folder).servers if names is None else names)]
        running = [one for one in chosen if one.running]
        for one in running:
            one.end()
    return [one.name for one in running]


def status(folder: Path) -> list[Answered]:
    """All servers that `folder` has, and what they do now."""
    folder = folder.resolve()
    return [
        Answered(one.name, one.address, _state_of(one), one.pid, str(one.log))
        for one in (Server(name, folder) for name in read_state(folder).servers)
    ]


def addresses(folder: Path) -> Addresses:
    """Where clients connect to what `folder` has, whether it runs or not."""
    state = read_state(folder.resolve())
    cassandra, kafka, zookeeper = (",".join(placed.address for placed in state.of(one)) for one in PRODUCTS)
    return Addresses(cassandra, kafka, zookeeper)


def server(name: str, folder: Path) -> Server:
    """The server called `name` in `folder`. Raises `ServiceError` if an `up` never placed it there."""
    return Server(name, folder.resolve())


def _state_of(one: Server) -> str:
    if not one.running:
        return "down"
    if one.stopped:
        return "stopped"
    return "serving" if one.ready() else "starting"


def _placed(state: State, wanted: Iterable[Product], *, cluster: bool, folder: Path) -> State:
    """The state in which every wanted product has its servers, and those that don't run have ports that are free."""
    if state.servers and state.cluster != cluster:
        held = "a cluster" if state.cluster else "single servers"
        raise ServiceError(f"{folder} holds {held}: take another folder")
    state = replace(state, cluster=cluster)
    for product in wanted:
        servers = state.of(product) or _new(product, cluster=cluster)
        if not _ports_fit(servers):
            hosts = [placed.host for placed in servers]
            taken = {port for placed in state.servers.values() for port in placed.ports.values()}
            ports = choose_ports(RECIPES[product].PORTS, hosts, taken)
            servers = [replace(placed, ports=ports) for placed in servers]
        state = state.put(*servers)
    return state


def _new(product: Product, *, cluster: bool) -> list[Placed]:
    if not cluster or product not in CLUSTERED:
        return [Placed(product, product, 1, HOST, {})]
    return [Placed(f"{product}-{place}", product, place, host, {}) for place, host in enumerate(CLUSTER_HOSTS, 1)]


def _ports_fit(servers: Iterable[Placed]) -> bool:
    """Whether each has its ports: they are in use by itself, or free. All of a product have the same."""
    servers = list(servers)
    if any(placed.running for placed in servers):
        return True
    return all(placed.ports and all(is_free(placed.host, port) for port in placed.ports.values()) for placed in servers)


def _waves(servers: Iterable[Placed]) -> list[list[Placed]]:
    """What may start side by side: all, except that the other Cassandras ask the first for the cluster's state."""
    servers = list(servers)
    later = [placed for placed in servers if placed.product == "cassandra" and placed.place > 1]
    return [[placed for placed in servers if placed not in later], later]
