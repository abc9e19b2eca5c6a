"""How is one ZooKeeper set up, started and asked whether it serves?

A tick of 0.5 s: a session's end is noticed within a tick, and sessions of 1 s to 60 s are allowed, so that tests need
not wait for long ones.
"""

from collections.abc import Sequence
from pathlib import Path

from .jars import classpath
from .java import OPTIONS, java
from .probe import zookeeper_serves
from .state import Placed

PORTS = {"client": 12181, "quorum": 12888, "election": 13888}
READY_TIMEOUT_S = 60.0
MEMORY = "-Xmx128m"
LOG_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSZ",
)
CONFIGURATION = """\
dataDir={data}
clientPortAddress={placed.host}
clientPort={client}
tickTime=500
initLimit=40
syncLimit=20
minSessionTimeout=1000
maxSessionTimeout=60000
maxClientCnxns=0
autopurge.snapRetainCount=3
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,stat,mntr,cons
"""


def configuration(placed: Placed, peers: Sequence[Placed], data: Path) -> str:
    """Its `zoo.cfg`. The servers of an ensemble name each other."""
    text = CONFIGURATION.format(data=data, placed=placed, client=placed.ports["client"])
    if len(peers) > 1:
        text += "".join(f"server.{p.place}={p.host}:{p.ports['quorum']}:{p.ports['election']}\n" for p in peers)
    return text


def command(placed: Placed, peers: Sequence[Placed], folder: Path) -> list[str]:
    """Write the configuration of one server into its folder, and give the command that starts it."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    (data / "myid").write_text(f"{placed.place}\n")
    file = folder / "zoo.cfg"
    file.write_text(configuration(placed, peers, data))
    options = [MEMORY, "-XX:+UseSerialGC", *OPTIONS, *LOG_OPTIONS]
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return [java(), *options, "-cp", classpath("zookeeper"), main, str(file)]


def ready(placed: Placed, peers: Sequence[Placed], log: str) -> bool:  # noqa: ARG001 - as the others
    return zookeeper_serves(placed.host, placed.ports["client"])
