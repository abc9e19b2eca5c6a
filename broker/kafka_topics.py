"""How must each topic be set up at Kafka, and what is wrong with the one that is there?

Pure. `plan` is the table: a topic's options by its kind. The logs and all others carry the broker's time
(`LogAppendTime`), so that no producer's clock counts. Two small topics are the twin's own: `<prefix>.meta` keeps which
makings of each topic there were (`kafka_incarnations`), `<prefix>.clock` is where the broker's clock is read.
"""

from collections.abc import Mapping

from msgspec import Struct

DAY_MS = 86_400_000
FOREVER = -1
SAFE_COPIES = 3
"""From so many copies on, an acknowledged record is on two brokers at least (`min.insync.replicas`)."""

META = "meta"
CLOCK = "clock"
BROKERS_TIME = "LogAppendTime"


class TopicLimits(Struct, frozen=True):
    """What an installation asks of its topics. Retention must exceed the longest outage that is promised."""

    replication: int = 1
    retention_ms: int = 7 * DAY_MS
    dead_retention_ms: int = FOREVER
    receipts_retention_ms: int = DAY_MS
    max_message_bytes: int = 1_048_588


class TopicPlan(Struct, frozen=True):
    """A topic as it should be."""

    partitions: int
    replication: int
    options: Mapping[str, str]


class TopicFound(Struct, frozen=True):
    """A topic as it is."""

    partitions: int
    replication: int
    options: Mapping[str, str]


class TopicFault(Struct, frozen=True):
    """What is wrong with a topic. `what` is missing, partitions, replication, time, retention, size or cleanup."""

    topic: str
    what: str
    found: str
    wanted: str


def own_topics(prefix: str) -> dict[str, int]:
    """The twin's own topics, with their numbers of partitions."""
    return {f"{prefix}.{META}": 1, f"{prefix}.{CLOCK}": 1}


def plan(prefix: str, topic: str, partitions: int, limits: TopicLimits) -> TopicPlan:
    options = {
        "message.timestamp.type": BROKERS_TIME,
        "cleanup.policy": "delete",
        "retention.ms": str(_retention_ms(topic.removeprefix(f"{prefix}."), limits)),
        "retention.bytes": str(FOREVER),
        "max.message.bytes": str(limits.max_message_bytes),
    }
    if limits.replication >= SAFE_COPIES:
        options["min.insync.replicas"] = str(limits.replication - 1)
    return TopicPlan(partitions, limits.replication, options)


def faults(topic: str, wanted: TopicPlan, found: TopicFound | None) -> list[TopicFault]:
    """What is wrong; none if the topic is at least as good as wanted."""
    if found is None:
        return [TopicFault(topic, "missing", "nothing", f"{wanted.partitions} partitions")]
    checks = (
        ("partitions", found.partitions == wanted.partitions, found.partitions, wanted.partitions),
        ("replication", found.replication >= wanted.replication, found.replication, wanted.replication),
        *(_check(name, found.options, wanted.options) for name in _KINDS),
    )
    return [TopicFault(topic, what, str(is_), str(should)) for what, good, is_, should in checks if not good]


_KINDS = {
    "message.timestamp.type": "time",
    "retention.ms": "retention",
    "max.message.bytes": "size",
    "cleanup.policy": "cleanup",
}


def _check(name: str, found: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[str, bool, str, str]:
    is_, should = found.get(name, "unknown"), wanted[name]
    good = is_ == should
    if name == "retention.ms":
        good = _enough(is_, should)
    elif name == "max.message.bytes":
        good = is_.isdecimal() and int(is_) >= int(should)
    return _KINDS[name], good, is_, should


def _enough(retention: str, wanted: str) -> bool:
    """Is a retention as long as wanted? A negative one is for ever."""
    if not retention.removeprefix("-").isdecimal():
        return False
    return int(retention) < 0 or 0 <= int(wanted) <= int(retention)


def _retention_ms(name: str, limits: TopicLimits) -> int:
    own = {META: FOREVER, CLOCK: DAY_MS, "dead": limits.dead_retention_ms, "receipts": limits.receipts_retention_ms}
    return own.get(name, limits.retention_ms)
