"""What the drivers are told, from the settings; and that no secret of theirs shows anywhere."""

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from minutewheel import fleet
from minutewheel.settings import Cassandra, Kafka, Settings, SettingsError, Zookeeper, load, shown

pytestmark = pytest.mark.pure

SECRET = "hunter2"
SIGNED_IN = {"username": "eve", "password": SECRET}


def test_tls_is_what_is_used_unless_the_settings_say_plaintext() -> None:
    context = fleet.tls_context(Cassandra())
    assert context is not None
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert fleet.kafka_security(Kafka())["security.protocol"] == "SSL"
    assert fleet.zookeeper_security(Zookeeper()).tls
    assert fleet.tls_context(Cassandra(security="plaintext")) is None
    assert fleet.kafka_security(Kafka(security="plaintext")) == {"security.protocol": "PLAINTEXT"}
    assert not fleet.zookeeper_security(Zookeeper(security="plaintext")).tls


@pytest.mark.parametrize("section", ["cassandra", "kafka", "zookeeper"])
@pytest.mark.parametrize("word", ["", "none", "PLAINTEXT", "false"])
def test_no_other_word_is_plaintext(section: str, word: str) -> None:
    with pytest.raises(SettingsError):
        load({f"{section}.security": word})


def test_who_we_are_is_said_to_each() -> None:
    kafka = fleet.kafka_security(Kafka(sasl="SCRAM-SHA-512", **SIGNED_IN))
    assert (kafka["security.protocol"], kafka["sasl.mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (kafka["sasl.username"], kafka["sasl.password"]) == ("eve", SECRET)
    in_the_clear = fleet.kafka_security(Kafka(security="plaintext", sasl="PLAIN", **SIGNED_IN))
    assert in_the_clear["security.protocol"] == "SASL_PLAINTEXT"
    access = fleet.access_of(Cassandra(hosts="a:9,b:9", security="plaintext", **SIGNED_IN))
    assert (access.contact_points, access.port, access.username, access.password) == (("a", "b"), 9, "eve", SECRET)
    assert fleet.zookeeper_security(Zookeeper(**SIGNED_IN)).credentials() == {("digest", f"eve:{SECRET}")}


def test_certificates_are_handed_over(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("ca_file", "cert_file", "key_file")}
    kafka = fleet.kafka_security(Kafka(**files))
    assert {kafka[f"ssl.{name}.location"] for name in ("ca", "certificate", "key")} == set(map(str, files.values()))
    zookeeper = fleet.zookeeper_security(Zookeeper(**files))
    assert (zookeeper.ca, zookeeper.certfile, zookeeper.keyfile) == tuple(map(str, files.values()))
    with pytest.raises(OSError, match=r"No such file|Errno 2"):
        fleet.tls_context(Cassandra(**files))


def signed_in_everywhere() -> Settings:
    signed_in: dict[str, Any] = {
        f"{name}.{k}": v for name in ("cassandra", "kafka", "zookeeper") for k, v in SIGNED_IN.items()
    }
    return load(
        {**signed_in, "kafka.sasl": "PLAIN", "cassandra.hosts": "a:9", "cassandra.security": "plaintext"}
    ).settings


def test_no_secret_shows() -> None:
    settings = signed_in_everywhere()
    texts = [
        repr(settings),
        str(settings),
        settings.model_dump_json(),
        str(shown(settings)),
        repr(fleet.access_of(settings.cassandra)),
        repr(fleet.connection_of(settings.kafka)),
        str(fleet.connection_of(settings.kafka)),
        repr(fleet.zookeeper_security(settings.zookeeper)),
    ]
    assert not [text for text in texts if SECRET in text]


def test_no_secret_shows_on_the_screen(tmp_path: Path) -> None:
    """Nor where the settings are wrong."""
    given = [f"--set=kafka.password={SECRET}", "--set=kafka.username=eve"]
    command = [sys.executable, "-c", "from minutewheel.console.cli import main; main()", "config", "show", *given]
    wrong = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    right = subprocess.run(
        [*command, "--set=kafka.sasl=PLAIN"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (wrong.returncode, right.returncode) == (2, 0)
    assert SECRET not in wrong.stdout + wrong.stderr + right.stdout + right.stderr
    assert "kafka.password = **********" in right.stdout


def test_copies_are_in_the_named_data_centre() -> None:
    assert fleet.replication_of(Cassandra(datacenter="dc1")) == {"class": fleet.NETWORK, "dc1": 3}
    assert fleet.replication_of(Cassandra(replication=1)) == {"class": fleet.SIMPLE, "replication_factor": 1}
