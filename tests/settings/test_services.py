"""How Cassandra, Kafka and ZooKeeper are reached."""

import pytest
from minutewheel.settings import SettingsError, load, shown

pytestmark = pytest.mark.pure

FLEET = {"mode": "real", "cassandra.hosts": "c:9042", "kafka.bootstrap": "k:9092", "zookeeper.hosts": "z:2181"}


@pytest.mark.parametrize(
    ("flags", "about"),
    [
        ({**FLEET, "kafka.bootstrap": "one:9092,two"}, "an address is host:port"),
        ({"kafka.username": "me", "kafka.password": "pw"}, "sasl and username go together"),
        ({"cassandra.username": "me"}, "username and password go together"),
        ({"zookeeper.security": "plaintext", "zookeeper.ca_file": "ca.pem"}, "would not be used"),
        ({"cassandra.cert_file": "a.pem"}, "cert_file and key_file go together"),
    ],
)
def test_what_cannot_work_together_is_refused(flags: dict[str, object], about: str) -> None:
    with pytest.raises(SettingsError, match=about):
        load(flags)


def test_a_fleet_is_reached_by_tls_unless_it_says_otherwise_and_its_passwords_are_not_shown() -> None:
    given = {**FLEET, "kafka.sasl": "PLAIN", "kafka.username": "me", "kafka.password": "hush"}
    settings = load(given).settings
    assert {settings.cassandra.security, settings.kafka.security, settings.zookeeper.security} == {"tls"}
    assert settings.kafka.bootstrap == ("k:9092",)
    assert "hush" not in f"{settings!r} {shown(settings)}"
