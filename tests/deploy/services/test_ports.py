import socket

import pytest
from minutewheel.deploy.services.errors import ServiceError
from minutewheel.deploy.services.ports import PORTS_TRIED, choose_ports, is_free

pytestmark = pytest.mark.pure

FIRST = 21000


def test_a_port_that_is_listened_on_is_passed_over() -> None:
    first = choose_ports({"client": FIRST}, ["127.0.0.1"])["client"]
    with socket.create_server(("127.0.0.1", first)):
        assert not is_free("127.0.0.1", first)
        assert choose_ports({"client": first}, ["127.0.0.1"])["client"] > first
    assert choose_ports({"client": first}, ["127.0.0.1"])["client"] == first


def test_a_port_must_be_free_on_each_host() -> None:
    hosts = ["127.0.0.1", "127.0.0.2"]
    first = choose_ports({"client": FIRST}, hosts)["client"]
    with socket.create_server(("127.0.0.2", first)):
        assert is_free("127.0.0.1", first)
        assert choose_ports({"client": first}, hosts)["client"] > first


def test_no_port_is_given_twice_and_none_that_is_taken() -> None:
    first = choose_ports({"client": FIRST}, ["127.0.0.1"])["client"]
    chosen = choose_ports({"client": first, "internode": first, "other": first}, ["127.0.0.1"], {first, first + 1})
    assert len(set(chosen.values())) == 3
    assert min(chosen.values()) >= first + 2


def test_when_none_is_free_it_says_where_it_looked() -> None:
    with pytest.raises(ServiceError, match=rf"no port from {FIRST} to {FIRST + PORTS_TRIED - 1} .* 127\.0\.0\.1"):
        choose_ports({"client": FIRST}, ["127.0.0.1"], range(FIRST, FIRST + PORTS_TRIED))
