"""What is wrong with the topics and the settings of the brokers, judged by what Kafka says of them?

Pure. What a topic should be is the table in `broker.kafka_topics`; here stands what to do when it is not so.
"""

from collections.abc import Mapping, Sequence

from ..broker.kafka_topics import TopicFault, TopicFound
from ..broker.port import Bounds
from ..store.position import unpack_position
from ..store.progress import Offsets
from .finding import Finding

KAFKA = "kafka"
SET = "set it: kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {option}={wanted}"
REMEDIES = {
    "missing": "run `minutewheel setup`; if the topic was there before, what stood in it is gone",
    "partitions": "shards are partitions: keep its records, delete it, and let `minutewheel setup` make it with 64",
    "replication": "give it more copies: kafka-reassign-partitions.sh; or lower kafka.replication if that was meant",
    "time": SET.replace("{option}", "message.timestamp.type"),
    "retention": SET.replace("{option}", "retention.ms"),
    "size": SET.replace("{option}", "max.message.bytes"),
    "cleanup": SET.replace("{option}", "cleanup.policy"),
}
WHY = {
    "time": "a producer's clock would count",
    "retention": "records may be deleted before they are applied",
    "size": "large tasks could not be written",
    "cleanup": "commands would be compacted away",
}


def topic_findings(faults: Sequence[TopicFault], queues: Mapping[str, str]) -> list[Finding]:
    """`queues`: the topic of each declared queue → the queue's name."""
    return [_finding(fault, queues.get(fault.topic)) for fault in faults]


def _finding(fault: TopicFault, queue: str | None) -> Finding:
    if fault.what == "missing" and queue is not None:
        what = f"queue {queue} has no topic {fault.topic}: its tasks end as dead"
        return Finding(KAFKA, "queue_without_topic", what, f"run `minutewheel queue put {queue}`")
    if fault.what == "missing":
        return Finding(KAFKA, "topic_missing", f"there is no topic {fault.topic}", REMEDIES["missing"])
    what = f"topic {fault.topic}: {fault.what} is {fault.found}, must be {fault.wanted}"
    if why := WHY.get(fault.what):
        what = f"{what}; {why}"
    return Finding(
        KAFKA, f"topic_{fault.what}", what, REMEDIES[fault.what].format(topic=fault.topic, wanted=fault.wanted)
    )


def insync_findings(topics: Mapping[str, TopicFound], replication: int) -> list[Finding]:
    """Is an acknowledged record on two brokers, and can one broker be missing without refusing all writes?"""
    return [finding for name, found in sorted(topics.items()) for finding in _insync(name, found, replication)]


def _insync(topic: str, found: TopicFound, replication: int) -> list[Finding]:
    given = found.options.get("min.insync.replicas", "1")
    insync = int(given) if given.isdecimal() else 1
    least, most = min(2, max(1, replication - 1)), max(1, found.replication - 1)
    if least <= insync <= most:
        return []
    what = f"topic {topic}: min.insync.replicas is {insync} with {found.replication} copies"
    why = "an acknowledged record may be on one broker only" if insync < least else "one broker less refuses all writes"
    wanted = max(least, min(insync, most))
    do = SET.format(topic=topic, option="min.insync.replicas", wanted=wanted)
    return [Finding(KAFKA, "topic_insync", f"{what}; {why}", do)]


def log_findings(topics: Sequence[str], places: Sequence[Offsets], bounds: Sequence[Sequence[Bounds]]) -> list[Finding]:
    """Have the three logs still what the shards will read next?

    `places`: of each shard what its progress row holds; `bounds`: of each log those of its partitions.
    """
    found = []
    for number, (topic, its) in enumerate(zip(topics, bounds, strict=True)):
        standings = [(unpack_position(places[shard][number]), end) for shard, end in enumerate(its)]
        remade = sum(place.incarnation != end.incarnation for place, end in standings)
        gone = sum(
            place.incarnation == end.incarnation and not end.start <= place.offset <= end.end
            for place, end in standings
        )
        found += _lost("log_remade", f"{topic} was made anew since {remade} shards recorded their place", remade)
        found += _lost("log_trimmed", f"{topic} has lost records that {gone} shards had not applied", gone)
    return found


def _lost(code: str, what: str, shards: int) -> list[Finding]:
    do = "find out what was lost; then stop the dispatchers and run `minutewheel setup --accept-loss`"
    return [Finding(KAFKA, code, what, do)] if shards else []


def broker_findings(
    options: Mapping[str, str], brokers: int, *, replication: int, session_ms: int, outage_ms: int
) -> list[Finding]:
    """Can the brokers hold so many copies, and do they keep a worker group as long as is asked of it?"""
    found = []
    if brokers < replication:
        what = f"there are {brokers} brokers, and kafka.replication asks for {replication} copies"
        found.append(Finding(KAFKA, "too_few_brokers", what, "add brokers, or lower kafka.replication"))
    low, high = (int(options.get(f"group.{end}.session.timeout.ms", session_ms)) for end in ("min", "max"))
    if not low <= session_ms <= high:
        what = f"workers ask for a session of {session_ms} ms, and the brokers grant {low} to {high}: none can join"
        found.append(Finding(KAFKA, "group_session", what, "set broker.session_ms to a value between them"))
    kept_ms = int(options.get("offsets.retention.minutes", 1 << 40)) * 60_000
    if kept_ms < outage_ms:
        what = f"a group without members is forgotten after {kept_ms} ms; the promised worker outage is {outage_ms} ms"
        do = "raise offsets.retention.minutes at the brokers, or lower retention.worker_outage_ms"
        found.append(Finding(KAFKA, "group_retention", what, do))
    return found


def access_findings(allowed: Mapping[str, frozenset[str] | None]) -> list[Finding]:
    """Topic → what we may do there, as Kafka says; None where it does not say."""
    found = []
    for topic, names in sorted(allowed.items()):
        if names is not None and (lacking := {"READ", "WRITE", "DESCRIBE"} - names):
            what = f"topic {topic}: we may not {' nor '.join(sorted(lacking)).lower()}"
            do = f"kafka-acls.sh --add --topic {topic} for the user kafka.username, operations read, write, describe"
            found.append(Finding(KAFKA, "topic_access", what, do))
    return found
