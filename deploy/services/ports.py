"""Which ports do the servers listen on? Fixed ones of our own where they are free, the next free ones otherwise.

They are not the products' defaults, so that a developer's own services are left alone, and they lie below the range
from which the system takes ports for outgoing connections. Between the choice and the server's start another process
may take a port; then the server's log says so, and the next `up` chooses again.
"""

import socket
from collections.abc import Collection, Mapping, Sequence

from .errors import ServiceError

PORTS_TRIED = 100


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        # A port that is only waiting for the late packets of closed connections is free, as it is for the servers.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def choose_ports(wanted: Mapping[str, int], hosts: Sequence[str], taken: Collection[int] = ()) -> dict[str, int]:
    """For each use, the first port from the wanted one on that is free on all `hosts`, and not in `taken`."""
    chosen: dict[str, int] = {}
    for use, first in wanted.items():
        used = {*taken, *chosen.values()}
        free = (
            port
            for port in range(first, first + PORTS_TRIED)
            if port not in used and all(is_free(host, port) for host in hosts)
        )
        port = next(free, None)
        if port is None:
            raise ServiceError(f"no port from {first} to {first + PORTS_TRIED - 1} is free on {', '.join(hosts)}")
        chosen[use] = port
    return chosen
