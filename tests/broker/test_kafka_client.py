import pytest
from confluent_kafka import Producer
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.kafka_client import Connection, made

SECRET = "correct horse"
SECURITY = {"security.protocol": "SASL_SSL", "sasl.username": "mw", "sasl.password": SECRET}


def test_no_secret_is_shown() -> None:
    connection = Connection("a:9092,b:9092", SECURITY)
    for shown in (repr(connection), str(connection), f"{[connection]}"):
        assert SECRET not in shown
        assert "a:9092,b:9092" in shown
        assert "sasl.password" in shown


def test_the_security_options_go_to_every_client() -> None:
    options = Connection("a:9092", SECURITY, client="me").options(linger_ms=7)
    assert SECURITY.items() <= options.items()
    assert options["bootstrap.servers"] == "a:9092"
    assert options["client.id"] == "me"
    assert options["linger.ms"] == 7


@pytest.mark.parametrize("name", ["acks", "enable.idempotence", "bootstrap.servers", "isolation.level", "sasl"])
def test_what_is_no_security_option_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Connection("a:9092", {name: "x"})


def test_options_that_librdkafka_does_not_have_are_an_error_without_the_secret() -> None:
    with pytest.raises(BrokerError) as caught:
        made(Producer, Connection("a:9092", {"sasl.password": SECRET, "sasl.nonsense": "1"}).options())
    assert "sasl.nonsense" in str(caught.value)
    assert SECRET not in str(caught.value)
