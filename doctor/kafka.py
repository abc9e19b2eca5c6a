"""What does Kafka say of its topics, its brokers, its clock, and of what we may do there?"""

from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack

from msgspec import Struct

from .. import fleet
from ..broker.kafka import KafkaBroker
from ..broker.kafka_admin import Admin
from ..broker.kafka_topics import faults, own_topics, plan
from ..broker.wire import Topics
from ..dispatcher.clock import SystemClock
from ..settings import Settings
from ..store.progress import Offsets
from ..store.task import SHARDS
from .clocks import Reading, clock_findings
from .finding import Finding
from .topics import access_findings, broker_findings, insync_findings, log_findings, topic_findings


class Kept(Struct, frozen=True):
    """What the store says, that Kafka must fit to: the queues, and the shards' places in the three logs."""

    queues: Collection[str] = ()
    places: Sequence[Offsets] | None = None


async def kafka_findings(settings: Settings, clock: SystemClock, kept: Kept, found: list[Finding]) -> None:
    """Put into `found` what is wrong. `BrokerError` when nobody answers any more."""
    admin = Admin(fleet.connection_of(settings.kafka))
    count, options = await admin.brokers()
    found += broker_findings(
        options,
        count,
        replication=settings.kafka.replication,
        session_ms=settings.broker.session_ms,
        outage_ms=settings.retention.worker_outage_ms,
    )
    findings, there = await _topics(settings, admin, kept)
    found += findings
    topics = Topics(settings.topics.prefix)
    async with AsyncExitStack() as stack:
        broker = await fleet.open_broker(settings, stack)
        if there >= own_topics(topics.prefix).keys():
            found += await _clock(broker, clock)
            if kept.places is not None and there.issuperset(topics.logs):
                bounds = [await broker.bounds(topic, range(SHARDS)) for topic in topics.logs]
                found += log_findings(topics.logs, kept.places, bounds)


async def _topics(settings: Settings, admin: Admin, kept: Kept) -> tuple[list[Finding], set[str]]:
    """Findings, and the topics that are there with as many partitions as they should have."""
    topics, limits = Topics(settings.topics.prefix), fleet.topic_limits(settings)
    queues = {topics.due(queue): queue for queue in kept.queues}
    wanted = {**own_topics(topics.prefix), **dict.fromkeys([*topics.fixed, *queues], SHARDS)}
    looked = await admin.found(wanted)
    plans = {name: plan(topics.prefix, name, number, limits) for name, number in wanted.items()}
    wrong = [fault for name in sorted(wanted) for fault in faults(name, plans[name], looked[name])]
    here = {name: topic for name, topic in looked.items() if topic is not None}
    found = topic_findings(wrong, queues)
    found += insync_findings(here, settings.kafka.replication)
    found += access_findings(await admin.allowed(here))
    return found, {name for name, topic in here.items() if topic.partitions == wanted[name]}


async def _clock(broker: KafkaBroker, clock: SystemClock) -> list[Finding]:
    """The broker's time is that of a record in the topic made for it. The first one waits for the connection too."""
    await broker.time_ms()
    before_ms = clock.now_ms()
    theirs_ms = await broker.time_ms()
    return clock_findings("kafka", Reading(before_ms, theirs_ms, clock.now_ms()))
