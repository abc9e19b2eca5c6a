import pytest
from minutewheel.broker.kafka_topics import FOREVER, TopicFault, TopicFound, TopicLimits, faults, own_topics, plan

pytestmark = pytest.mark.pure

LIMITS = TopicLimits(replication=3)
SUBMIT = plan("mw", "mw.submit", 64, LIMITS)


def found(**changed: str) -> TopicFound:
    options = {name.replace("_", "."): value for name, value in changed.items()}
    return TopicFound(64, 3, {**SUBMIT.options, **options})


def test_every_topic_carries_the_brokers_time() -> None:
    for name in ("mw.submit", "mw.due.mail", "mw.dead", *own_topics("mw")):
        assert plan("mw", name, 1, LIMITS).options["message.timestamp.type"] == "LogAppendTime"


def test_three_copies_outlive_one_broker_and_one_copy_asks_for_nothing() -> None:
    assert SUBMIT.options["min.insync.replicas"] == "2"
    assert "min.insync.replicas" not in plan("mw", "mw.submit", 64, TopicLimits(replication=1)).options


@pytest.mark.parametrize(
    ("topic", "retention_ms"),
    [("mw.submit", 11), ("mw.due.dead", 11), ("mw.dead", FOREVER), ("mw.receipts", 22), ("mw.meta", FOREVER)],
)
def test_retention_goes_by_the_kind_of_topic(topic: str, retention_ms: int) -> None:
    limits = TopicLimits(retention_ms=11, receipts_retention_ms=22)
    assert plan("mw", topic, 1, limits).options["retention.ms"] == str(retention_ms)


def test_a_topic_as_planned_has_no_fault() -> None:
    assert faults("mw.submit", SUBMIT, found()) == []


def test_a_topic_better_than_planned_has_no_fault() -> None:
    better = found(retention_ms="-1", max_message_bytes="9000000")
    assert faults("mw.submit", SUBMIT, TopicFound(64, 5, better.options)) == []


def test_a_missing_topic_is_the_one_fault() -> None:
    assert faults("mw.submit", SUBMIT, None) == [TopicFault("mw.submit", "missing", "nothing", "64 partitions")]


@pytest.mark.parametrize(
    ("there", "what"),
    [
        (TopicFound(32, 3, SUBMIT.options), "partitions"),
        (TopicFound(128, 3, SUBMIT.options), "partitions"),
        (TopicFound(64, 1, SUBMIT.options), "replication"),
        (found(message_timestamp_type="CreateTime"), "time"),
        (found(retention_ms="3600000"), "retention"),
        (found(retention_ms="soon"), "retention"),
        (found(max_message_bytes="1000"), "size"),
        (found(cleanup_policy="compact"), "cleanup"),
        (found(cleanup_policy="compact,delete"), "cleanup"),
    ],
)
def test_each_fault_is_found_alone(there: TopicFound, what: str) -> None:
    assert [fault.what for fault in faults("mw.submit", SUBMIT, there)] == [what]


def test_what_must_be_kept_for_ever_may_not_end() -> None:
    dead = plan("mw", "mw.dead", 64, LIMITS)
    ends = TopicFound(64, 3, {**dead.options, "retention.ms": str(10**15)})
    assert [fault.what for fault in faults("mw.dead", dead, ends)] == ["retention"]
