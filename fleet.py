"""How are the parts of a fleet made from the settings, and how are its services set up and checked?

Only `wiring`, `doctor` and the load tests use it, where the settings say `mode = "real"`. The drivers are loaded here
and nowhere before.
"""

import ssl
from collections.abc import Iterable
from contextlib import AsyncExitStack

from .broker.kafka import KafkaBroker
from .broker.kafka_client import Connection
from .broker.kafka_topics import TopicLimits
from .broker.wire import Topics
from .coordinator.zookeeper import ZookeeperCoordinator
from .coordinator.zookeeper_security import Security
from .settings import Cassandra, Kafka, Secured, Settings, Zookeeper
from .store.cassandra import CassandraStore
from .store.cassandra_bridge import Access, CassandraConnection
from .store.cassandra_ledger import CassandraLedger
from .store.cassandra_rows import Keep
from .store.cassandra_schema import apply_schema, check_schema
from .store.task import SHARDS

SIMPLE = "SimpleStrategy"
NETWORK = "NetworkTopologyStrategy"
RECORD_SET_BYTES = 4_096
"""Kafka's limit of a topic counts what goes around a message, too."""


async def open_cassandra(settings: Settings, stack: AsyncExitStack) -> CassandraConnection:
    """A connection that the stack closes."""
    connection = await CassandraConnection.open(access_of(settings.cassandra))
    stack.push_async_callback(connection.close)
    return connection


async def open_store(settings: Settings, connection: CassandraConnection) -> CassandraStore:
    keep = Keep(tasks_s=settings.retention.tasks_ms // 1_000)
    return await CassandraStore.open(connection, settings.cassandra.keyspace, keep=keep)


async def open_ledger(settings: Settings, connection: CassandraConnection) -> CassandraLedger:
    keep_s = settings.retention.ledger_ms // 1_000
    return await CassandraLedger.open(connection, settings.cassandra.keyspace, keep_s=keep_s)


async def open_broker(settings: Settings, stack: AsyncExitStack) -> KafkaBroker:
    broker = await KafkaBroker.open(
        connection_of(settings.kafka),
        settings.topics.prefix,
        limits=topic_limits(settings),
        message_timeout_ms=settings.kafka.message_timeout_ms,
        max_message_bytes=settings.broker.max_message_bytes,
        session_ms=settings.broker.session_ms,
    )
    stack.push_async_callback(broker.close)
    return broker


def open_coordinator(settings: Settings, stack: AsyncExitStack) -> ZookeeperCoordinator:
    coordinator = ZookeeperCoordinator(
        ",".join(settings.zookeeper.hosts),
        chroot=settings.zookeeper.chroot,
        session_timeout_ms=settings.dispatcher.session_ms,
        security=zookeeper_security(settings.zookeeper),
    )
    stack.push_async_callback(coordinator.close)
    return coordinator


async def set_up_cassandra(settings: Settings, connection: CassandraConnection) -> list[str]:
    """Make what is missing; what differs still, a sentence each."""
    return await apply_schema(connection, settings.cassandra.keyspace, replication_of(settings.cassandra))


async def cassandra_faults(settings: Settings, connection: CassandraConnection) -> list[str]:
    """What is missing or differs, a sentence each."""
    return await check_schema(connection, settings.cassandra.keyspace, replication_of(settings.cassandra))


# What the parts take, from the settings.


def access_of(cassandra: Cassandra) -> Access:
    port = int(cassandra.hosts[0].rpartition(":")[2])
    return Access(
        tuple(address.rpartition(":")[0].strip("[]") for address in cassandra.hosts),
        port,
        cassandra.datacenter or None,
        cassandra.username,
        cassandra.password.get_secret_value(),
        tls_context(cassandra),
        cassandra.timeout_ms,
    )


def replication_of(cassandra: Cassandra) -> dict[str, str | int]:
    """Copies in the named data centre; without a name, wherever there are servers."""
    if cassandra.datacenter:
        return {"class": NETWORK, cassandra.datacenter: cassandra.replication}
    return {"class": SIMPLE, "replication_factor": cassandra.replication}


def connection_of(kafka: Kafka) -> Connection:
    return Connection(",".join(kafka.bootstrap), kafka_security(kafka))


def kafka_security(kafka: Kafka) -> dict[str, str]:
    """The options of librdkafka."""
    sasl = kafka.sasl != "none"
    protocol = ("SASL_" if sasl else "") + ("SSL" if kafka.security == "tls" else "PLAINTEXT")
    options = {
        "security.protocol": protocol,
        "ssl.ca.location": str(kafka.ca_file or ""),
        "ssl.certificate.location": str(kafka.cert_file or ""),
        "ssl.key.location": str(kafka.key_file or ""),
    }
    if sasl:
        options["sasl.mechanism"] = kafka.sasl
        options["sasl.username"] = kafka.username
        options["sasl.password"] = kafka.password.get_secret_value()
    return {name: value for name, value in options.items() if value}


def topic_limits(settings: Settings) -> TopicLimits:
    return TopicLimits(
        replication=settings.kafka.replication,
        retention_ms=settings.retention.due_ms,
        max_message_bytes=settings.broker.max_message_bytes + RECORD_SET_BYTES,
    )


def zookeeper_security(zookeeper: Zookeeper) -> Security:
    return Security(
        user=zookeeper.username,
        password=zookeeper.password.get_secret_value(),
        tls=zookeeper.security == "tls",
        ca=str(zookeeper.ca_file or ""),
        certfile=str(zookeeper.cert_file or ""),
        keyfile=str(zookeeper.key_file or ""),
    )


def tls_context(secured: Secured) -> ssl.SSLContext | None:
    """Certificates and host names are checked, always; None where everything goes in the clear."""
    if secured.security == "plaintext":
        return None
    context = ssl.create_default_context(cafile=secured.ca_file)
    if secured.cert_file is not None:
        context.load_cert_chain(secured.cert_file, secured.key_file)
    return context


async def topic_faults(settings: Settings, broker: KafkaBroker, queues: Iterable[str]) -> list[str]:
    """What is wrong with the topics, those of the queues included, a sentence each."""
    topics = Topics(settings.topics.prefix)
    wanted = dict.fromkeys([*topics.fixed, *map(topics.due, queues)], SHARDS)
    found = await broker.topic_faults(wanted)
    return [f"topic {fault.topic}: {fault.what} is {fault.found}, asked for is {fault.wanted}" for fault in found]
