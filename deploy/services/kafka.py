"""How is one Kafka set up, started and asked whether it serves? One process, KRaft, broker and controller in one.

Topics come from `minutewheel setup`, never by themselves. Internal topics have few partitions: each costs files and
time at the first use.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from .errors import ServiceError
from .jars import classpath
from .java import OPTIONS, java
from .probe import kafka_serves
from .state import Placed
from .zookeeper import LOG_OPTIONS

PORTS = {"client": 19092, "controller": 19093}
READY_TIMEOUT_S = 90.0
MEMORY = "-Xmx512m"
CLUSTER_ID = "bWludXRld2hlZWwtdGVzdA"
"""Sixteen bytes in base 64. The same in every folder: no two of them ever meet."""
STARTED = "Kafka Server started"
CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=CLIENT://{host}:{client},CONTROLLER://{host}:{controller}
advertised.listeners=CLIENT://{host}:{client}
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENT
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=33554432
"""


def configuration(placed: Placed, data: Path) -> str:
    """Its `server.properties`."""
    return CONFIGURATION.format(host=placed.host, data=data, **placed.ports)


def command(placed: Placed, peers: Sequence[Placed], folder: Path) -> list[str]:  # noqa: ARG001 - as the others
    """Write the configuration of the one server, format its data folder if it is new, and give its command."""
    data = folder / "data"
    folder.mkdir(parents=True, exist_ok=True)
    properties = folder / "server.properties"
    properties.write_text(configuration(placed, data))
    start = [java(), MEMORY, *OPTIONS, *LOG_OPTIONS, "-cp", classpath("kafka")]
    if not (data / "meta.properties").exists():
        _format([*start, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)])
    return [*start, "kafka.Kafka", str(properties)]


def ready(placed: Placed, peers: Sequence[Placed], log: str) -> bool:  # noqa: ARG001 - as the others
    """The broker answers before it may lead partitions; its log says when it may."""
    return STARTED in log and kafka_serves(placed.host, placed.ports["client"])


def _format(command: list[str]) -> None:
    done = subprocess.run(  # noqa: S603 - the command is ours
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise ServiceError(f"Kafka could not format its data folder; it says:\n{done.stdout}")
