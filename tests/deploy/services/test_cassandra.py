import re

import pytest
from minutewheel.deploy.services.cassandra import PORTS, configuration, ready
from minutewheel.deploy.services.state import Placed

pytestmark = pytest.mark.pure


def ring(count: int) -> list[Placed]:
    return [Placed(f"cassandra-{n}", "cassandra", n, f"127.0.0.{n}", PORTS) for n in range(1, count + 1)]


def setting(text: str, name: str) -> str:
    found = re.search(rf"^ *(?:- )?{name}: (.*)$", text, re.MULTILINE)
    assert found, name
    return found[1]


def test_each_listens_where_it_was_placed_and_asks_the_first() -> None:
    servers = ring(3)
    for placed in servers:
        text = configuration(placed, servers)
        assert setting(text, "listen_address") == setting(text, "rpc_address") == placed.host
        assert setting(text, "native_transport_port") == str(PORTS["client"])
        assert setting(text, "seeds") == f'"127.0.0.1:{PORTS["internode"]}"'


@pytest.mark.parametrize("count", [1, 3])
def test_the_ring_is_shared_in_equal_parts(count: int) -> None:
    servers = ring(count)
    tokens = [int(setting(configuration(placed, servers), "initial_token")) for placed in servers]
    assert all(-(2**63) < token < 2**63 for token in tokens)
    shares = [(after - before) % 2**64 for before, after in zip(tokens, [*tokens[1:], tokens[0]], strict=True)]
    assert count == 1 or max(shares) - min(shares) <= count


def test_conditional_writes_are_those_of_the_new_kind() -> None:
    assert setting(configuration(ring(1)[0], ring(1)), "paxos_variant") == "v2"


def test_one_that_nobody_listens_for_is_not_ready() -> None:
    (placed,) = ring(1)
    alone = Placed("cassandra", "cassandra", 1, placed.host, {**PORTS, "client": 1})
    assert not ready(alone, [alone], "")
