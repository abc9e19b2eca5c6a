"""How is one Cassandra set up, started and asked whether it serves?

Format choices are those of a new Cassandra 5 (tries, no compatibility with older files), `paxos_variant: v2`, and
limits and timeouts its defaults, so that what the tests see is what an installation sees. What is small here: the
heap, the commit log's segments, the compaction's threads.
"""

from collections.abc import Sequence
from pathlib import Path

from .jars import jars
from .java import OPTIONS, java
from .probe import cassandra_serves
from .state import Placed

PORTS = {"client": 19042, "internode": 17000}
READY_TIMEOUT_S = 240.0
MEMORY = ("-Xms1g", "-Xmx1g")
CLUSTER_MEMORY = ("-Xms768m", "-Xmx768m")
EXPORTS = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
)
OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
)
ALONE = ("ring_delay_ms=1", "skip_wait_for_gossip_to_settle=0", "superuser_setup_delay_ms=0")
AMONG_PEERS = ("ring_delay_ms=5000", "skip_wait_for_gossip_to_settle=0", "superuser_setup_delay_ms=0")
CONFIGURATION = """\
cluster_name: minutewheel
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
num_tokens: 1
initial_token: {token}
auto_bootstrap: false
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "{seed}"
listen_address: {host}
rpc_address: {host}
native_transport_port: {client}
storage_port: {internode}
endpoint_snitch: SimpleSnitch
dynamic_snitch: false
commitlog_sync: periodic
commitlog_sync_period: 10000ms
commitlog_segment_size: 16MiB
commitlog_total_space: 512MiB
auto_snapshot: false
paxos_variant: v2
storage_compatibility_mode: NONE
uuid_sstable_identifiers_enabled: true
memtable:
  configurations:
    trie:
      class_name: TrieMemtable
    default:
      inherits: trie
memtable_allocation_type: offheap_objects
sstable:
  selected_format: bti
concurrent_compactors: 1
concurrent_reads: 4
concurrent_writes: 4
concurrent_counter_writes: 2
native_transport_max_threads: 6
"""
LOGGING = """\
<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder>
      <pattern>%date{ISO8601} %-5level [%thread] %logger{0}: %msg%n</pattern>
    </encoder>
  </appender>
  <root level="INFO">
    <appender-ref ref="STDOUT"/>
  </root>
  <logger name="com.google.common" level="WARN"/>
</configuration>
"""


def configuration(placed: Placed, peers: Sequence[Placed]) -> str:
    """Its `cassandra.yaml`. The first of the peers is the seed, which the others ask for the cluster's state."""
    seed = f"{peers[0].host}:{peers[0].ports['internode']}"
    return CONFIGURATION.format(host=placed.host, seed=seed, token=_token(placed.place, len(peers)), **placed.ports)


def command(placed: Placed, peers: Sequence[Placed], folder: Path) -> list[str]:
    """Write the configuration of one server into its folder, and give the command that starts it."""
    settings, data = folder / "conf", folder / "data"
    for made in (settings, data, folder / "tmp"):
        made.mkdir(parents=True, exist_ok=True)
    (settings / "cassandra.yaml").write_text(configuration(placed, peers))
    (settings / "logback.xml").write_text(LOGGING)
    return [java(), *_options(peers, folder), "org.apache.cassandra.service.CassandraDaemon"]


def ready(placed: Placed, peers: Sequence[Placed], log: str) -> bool:
    """It takes statements, knows the others, and has seen them alive (or it would refuse a quorum at once)."""
    others = [peer for peer in peers if peer.name != placed.name and peer.running]
    if not all(f"/{peer.host}:{peer.ports['internode']} is now UP" in log for peer in others):
        return False
    return cassandra_serves(placed.host, placed.ports["client"], others=len(others))


def _options(peers: Sequence[Placed], folder: Path) -> list[str]:
    library, settings = jars("cassandra"), folder / "conf"
    (meter,) = library.glob("jamm-*.jar")
    cassandra = {
        "cassandra-foreground": "yes",
        "cassandra.config": f"file://{settings}/cassandra.yaml",
        "cassandra.storagedir": folder / "data",
        "cassandra.logdir": folder,
    }
    return [
        *(MEMORY if len(peers) == 1 else CLUSTER_MEMORY),
        "-XX:+UseG1GC",
        *OPTIONS,
        f"-javaagent:{meter}",
        "-Djdk.attach.allowAttachSelf=true",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Djava.io.tmpdir={folder / 'tmp'}",
        *(f"-D{name}={value}" for name, value in cassandra.items()),
        *(f"-Dcassandra.{option}" for option in (ALONE if len(peers) == 1 else AMONG_PEERS)),
        *(part for package in EXPORTS for part in ("--add-exports", f"{package}=ALL-UNNAMED")),
        *(part for package in OPENS for part in ("--add-opens", f"{package}=ALL-UNNAMED")),
        *("-cp", f"{settings}:{library}/*"),
    ]


def _token(place: int, count: int) -> int:
    """Where in the ring the server stands: the ring in equal parts."""
    return -(2**63) + (2**64 // count) * (place - 1) + 1
