"""Wrong settings and changes are planted in a fleet on the real services; each must be found, and say what to do."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions
from kazoo.client import KazooClient
from minutewheel import fleet as parts
from minutewheel.dispatcher.clock import SystemClock
from minutewheel.doctor import examine
from minutewheel.store.port import Queue
from minutewheel.wiring import opened

pytestmark = pytest.mark.real


class ClockOf(SystemClock):
    """This machine's, off by so much."""

    def __init__(self, off_ms: int) -> None:
        self._off_ms = off_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._off_ms


async def topics_spoilt(fleet: Any) -> None:
    """A topic is made anew, one is gone, one has a partition too many, and the options of others are wrong."""
    async with AsyncExitStack() as stack:
        broker = await parts.open_broker(fleet.settings(), stack)
        await broker.delete_topic(f"{fleet.name}.receipts")
        await broker.delete_topic(f"{fleet.name}.outcomes")
        await broker.create_topics({f"{fleet.name}.outcomes": 64})
    await asyncio.to_thread(options_spoilt, fleet)


def options_spoilt(fleet: Any) -> None:
    admin = AdminClient({"bootstrap.servers": fleet.kafka})
    options = {
        "submit": ("retention.ms", "60000"),
        "outcomes": ("cleanup.policy", "compact"),
        "dead": ("max.message.bytes", "1000"),
        "forwarded": ("message.timestamp.type", "CreateTime"),
        "due.mail": ("min.insync.replicas", "2"),
    }
    changes = [
        ConfigResource(
            ConfigResource.Type.TOPIC,
            f"{fleet.name}.{topic}",
            incremental_configs=[ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)],
        )
        for topic, (name, value) in options.items()
    ]
    answers = [
        *admin.incremental_alter_configs(changes).values(),
        *admin.create_partitions([NewPartitions(f"{fleet.name}.rejected", 65)]).values(),
    ]
    for answer in answers:
        answer.result()


async def keyspace_spoilt(fleet: Any) -> None:
    await in_keyspace(
        fleet,
        "ALTER TABLE {0}.progress WITH gc_grace_seconds = 1",
        "ALTER TABLE {0}.bucket WITH default_time_to_live = 3600",
        "ALTER KEYSPACE {0} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} "
        "AND durable_writes = false",
    )


async def in_keyspace(fleet: Any, *statements: str) -> None:
    async with AsyncExitStack() as stack:
        connection = await parts.open_cassandra(fleet.settings(), stack)
        for statement in statements:
            await connection.alter(statement.format(fleet.name))


async def declared_without_topics(fleet: Any) -> None:
    async with AsyncExitStack() as stack:
        connection = await parts.open_cassandra(fleet.settings(), stack)
        await (await parts.open_store(fleet.settings(), connection)).put_queue(Queue("forgotten"))


def folder_made(fleet: Any) -> None:
    zookeeper = KazooClient(",".join(fleet.settings().zookeeper.hosts))
    zookeeper.start()
    zookeeper.ensure_path(fleet.settings().zookeeper.chroot)
    zookeeper.stop()
    zookeeper.close()


async def codes(settings: Any, clock: Any = None) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for finding in await examine(settings, clock):
        assert len(finding.do) > 10, f"and what is to be done about {finding}?"
        found.setdefault(finding.service, set()).add(finding.code)
    return found


async def test_what_is_planted_is_found(fleet: Any) -> None:
    assert await examine(fleet.settings()) == []

    nowhere = {"cassandra.hosts": "127.0.0.1:1", "kafka.bootstrap": "127.0.0.1:1", "zookeeper.hosts": "127.0.0.1:1"}
    asked = {"dispatcher.session_ms": 1_000, "kafka.message_timeout_ms": 300, "cassandra.timeout_ms": 500}
    assert await codes(fleet.settings(**nowhere, **asked)) == {
        "cassandra": {"no_answer"},
        "kafka": {"no_answer"},
        "zookeeper": {"no_answer", "server_down"},
    }

    folder_made(fleet)
    await declared_without_topics(fleet)
    await declare_mail(fleet)
    await topics_spoilt(fleet)
    await keyspace_spoilt(fleet)
    wrong = {
        "zookeeper.hosts": f"{fleet.settings().zookeeper.hosts[0]},127.0.0.1:1",
        "kafka.replication": 3,
        "cassandra.replication": 3,
        "broker.session_ms": 3_600_000,
        "retention.worker_outage_ms": 8 * 86_400_000,
        "retention.due_ms": 9 * 86_400_000,
        "retention.tasks_ms": 9 * 86_400_000,
        "dispatcher.session_ms": 100_000,
        "zookeeper.username": "eve",
        "zookeeper.password": "secret",
    }
    assert await codes(fleet.settings(**wrong), ClockOf(60_000)) == {
        "kafka": {
            *("topic_missing", "topic_partitions", "topic_replication", "topic_retention", "topic_cleanup"),
            *("topic_size", "topic_time", "topic_insync", "too_few_brokers", "queue_without_topic", "log_remade"),
            *("group_session", "group_retention", "clock"),
        },
        "cassandra": {"replication", "too_few_servers", "gc_grace", "default_ttl", "durable_writes", "clock"},
        "zookeeper": {"session_timeout", "folder_open", "clock", "server_down"},
    }

    await in_keyspace(fleet, "TRUNCATE {0}.progress")
    assert "progress_missing" in (await codes(fleet.settings()))["cassandra"]
    await in_keyspace(fleet, "INSERT INTO {0}.meta (name, value) VALUES ('schema', '7')", "DROP TABLE {0}.dead_letter")
    assert {"schema_newer", "table_missing"} <= (await codes(fleet.settings()))["cassandra"]
    await in_keyspace(fleet, "DROP KEYSPACE {0}")
    assert (await codes(fleet.settings()))["cassandra"] == {"keyspace_missing"}


async def declare_mail(fleet: Any) -> None:
    async with opened(fleet.settings()) as installation:
        await installation.declare(["mail"])
