import logging
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from minutewheel.coordinator import CoordinatorError, CoordinatorUnavailable
from minutewheel.coordinator.zookeeper import ZookeeperCoordinator
from minutewheel.coordinator.zookeeper_security import Security
from minutewheel.deploy.services import classpath
from minutewheel.deploy.services.java import java
from rich.pretty import pretty_repr

SIGNED_IN = Security(user="ada", password="hush-hush")


@pytest.mark.pure
def test_no_secret_is_shown() -> None:
    secret = Security(
        user="ada", password="hush-hush", tls=True, certfile="c.pem", keyfile="k.pem", keyfile_password="hush-key"
    )
    for shown in (repr(secret), str(secret), f"{secret}", pretty_repr(secret)):
        assert "hush" not in shown
        assert "ada" in shown


@pytest.mark.pure
@pytest.mark.parametrize(
    "halves",
    [
        {"user": "ada"},
        {"password": "x"},
        {"user": "a:b", "password": "x"},
        {"ca": "ca.pem"},
        {"tls": True, "certfile": "c.pem"},
        {"tls": True, "keyfile": "k.pem"},
    ],
)
def test_what_says_half_of_something_is_refused(halves: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ZooKeeper user|certificate"):
        Security(**halves)


@pytest.mark.pure
def test_a_file_that_is_missing_or_holds_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    with pytest.raises(CoordinatorError, match=str(file)):
        Security(tls=True, ca=str(file)).context()
    file.write_text("rubbish")
    with pytest.raises(CoordinatorError, match=str(file)):
        Security(tls=True, ca=str(file)).context()


@pytest.mark.pure
def test_certificate_and_host_name_are_checked_unless_that_is_switched_off() -> None:
    strict, loose = Security(tls=True).context(), Security(tls=True, verify=False).context()
    assert strict
    assert strict.check_hostname
    assert strict.verify_mode is ssl.CERT_REQUIRED
    assert loose
    assert not loose.check_hostname
    assert loose.verify_mode is ssl.CERT_NONE
    assert Security().context() is None


@pytest.mark.real
async def test_what_one_user_made_is_closed_to_all_others(
    reach: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = await reach(security=SIGNED_IN).join()
    await ada.acquire(3)
    for stranger in (reach(), reach(security=Security(user="ada", password="other-word"))):
        with pytest.raises(CoordinatorError, match="NoAuth"):
            await stranger.join()
        with pytest.raises(CoordinatorError, match="NoAuth"):
            await stranger.owners()
    assert await reach(security=SIGNED_IN).owners() == {3: ada.member}
    assert "hush" not in caplog.text
    assert "other-word" not in caplog.text


# TLS, between us and a ZooKeeper that asks for certificates.

SECURE = """\
dataDir={folder}/data
secureClientPort={port}
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
tickTime=500
admin.enableServer=false
ssl.keyStore.location={folder}/server.pem
ssl.trustStore.location={folder}/ca.pem
ssl.clientAuth=need
"""


class Secure:
    """A ZooKeeper that speaks TLS alone, for the name `localhost` alone."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def reach(self, host: str = "localhost", timeout_ms: int = 3_000, **security: Any) -> ZookeeperCoordinator:
        given = {"ca": "ca.pem", "certfile": "client.crt", "keyfile": "client.key", **security}
        files = {name: value and str(self.folder / value) for name, value in given.items()}
        return ZookeeperCoordinator(
            f"{host}:{self.port}", session_timeout_ms=timeout_ms, security=Security(tls=True, **files)
        )


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run([shutil.which("openssl") or "openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_certificate(folder: Path, name: str, authority: str) -> None:
    openssl(folder, *f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}".split())
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    signing = f"x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial"
    openssl(folder, *f"{signing} -out {name}.crt -days 2 -extfile names".split())


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    folder = tmp_path_factory.mktemp("secure")
    for authority in ("ca", "another"):
        request = f"req -x509 -newkey rsa:2048 -nodes -keyout {authority}.key -out {authority}.pem -days 2"
        openssl(folder, *request.split(), "-subj", f"/CN={authority}")
    make_certificate(folder, "server", "ca")
    make_certificate(folder, "client", "ca")
    (folder / "server.pem").write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
    (folder / "data").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "zoo.cfg").write_text(SECURE.format(folder=folder, port=port))
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    with (folder / "log").open("wb") as output:
        command = [java(), "-Xmx128m", "-cp", classpath("zookeeper"), main, str(folder / "zoo.cfg")]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    yield Secure(folder, port)
    process.terminate()
    process.wait(30)


@pytest.mark.real
async def test_with_the_right_certificates_it_is_reached(secure: Secure) -> None:
    coordinator = secure.reach(timeout_ms=30_000)  # it may still be starting
    assert await coordinator.members() == frozenset()
    await coordinator.close()


@pytest.mark.real
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"ca": "another.pem"}, "CERTIFICATE_VERIFY_FAILED"),
        ({"host": "127.0.0.1"}, "mismatch"),
        ({"certfile": "", "keyfile": ""}, "Connection dropped"),
    ],
)
async def test_with_a_wrong_one_it_is_not(secure: Secure, wrong: dict[str, str], reason: str) -> None:
    begun = secure.reach(timeout_ms=30_000)
    await begun.members()
    await begun.close()
    with pytest.raises(CoordinatorUnavailable, match=reason):
        await secure.reach(timeout_ms=1_500, **wrong).members()
