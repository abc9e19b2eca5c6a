import pytest
from minutewheel.broker.kafka_topics import TopicFault, TopicFound
from minutewheel.broker.port import Bounds
from minutewheel.doctor import topics
from minutewheel.store.position import pack_position

pytestmark = pytest.mark.pure

LOGS = ("submit", "forwarded", "outcomes")


@pytest.mark.parametrize("what", topics.REMEDIES)
def test_each_fault_has_its_remedy(what: str) -> None:
    (found,) = topics.topic_findings([TopicFault("mw.submit", what, "1", "2")], {})
    assert found.code == f"topic_{what}"
    assert "mw.submit" in found.what
    assert "{" not in found.do


def test_a_queues_topic_is_named_by_its_queue() -> None:
    fault = TopicFault("mw.due.mail", "missing", "nothing", "64 partitions")
    (found,) = topics.topic_findings([fault], {"mw.due.mail": "mail"})
    assert (found.code, found.do) == ("queue_without_topic", "run `minutewheel queue put mail`")


@pytest.mark.parametrize(
    ("copies", "insync", "asked", "well"),
    [
        *[(1, "1", 1, True), (1, "2", 1, False)],
        *[(2, "1", 2, True), (2, "2", 2, False)],
        *[(3, "2", 3, True), (3, "1", 3, False), (3, "3", 3, False)],
        (5, "3", 3, True),
    ],
)
def test_an_acknowledged_record_is_on_two_brokers_and_one_may_be_missing(
    copies: int, insync: str, asked: int, well: bool
) -> None:
    found = topics.insync_findings({"mw.submit": TopicFound(64, copies, {"min.insync.replicas": insync})}, asked)
    assert [finding.code for finding in found] == ([] if well else ["topic_insync"])


def log_codes(place: int, bounds: Bounds) -> list[str]:
    whole = Bounds(0, 10, 1)
    places = [(place, pack_position(1, 5), pack_position(1, 5))]
    return [finding.code for finding in topics.log_findings(LOGS, places, [[bounds], [whole], [whole]])]


def test_what_a_shard_reads_next_must_be_there() -> None:
    assert log_codes(pack_position(1, 0), Bounds(0, 10, 1)) == []
    assert log_codes(pack_position(1, 10), Bounds(3, 10, 1)) == [], "it has applied all that there is"
    assert log_codes(pack_position(1, 2), Bounds(3, 10, 1)) == ["log_trimmed"]
    assert log_codes(pack_position(1, 11), Bounds(3, 10, 1)) == ["log_trimmed"], "its end went back"
    assert log_codes(pack_position(1, 5), Bounds(0, 10, 2)) == ["log_remade"]


def broker_codes(brokers: int = 3, **options: str) -> list[str]:
    spelt = {name.replace("_", "."): value for name, value in options.items()}
    found = topics.broker_findings(spelt, brokers, replication=3, session_ms=10_000, outage_ms=86_400_000)
    return [finding.code for finding in found]


def test_what_brokers_must_grant() -> None:
    assert broker_codes() == [], "what they don't say is not judged"
    assert broker_codes(2) == ["too_few_brokers"]
    assert broker_codes(group_max_session_timeout_ms="9000") == ["group_session"]
    assert broker_codes(group_min_session_timeout_ms="11000") == ["group_session"]
    assert broker_codes(offsets_retention_minutes="1440") == []
    assert broker_codes(offsets_retention_minutes="1439") == ["group_retention"]


def test_what_we_must_be_allowed() -> None:
    everything = frozenset({"READ", "WRITE", "DESCRIBE", "DELETE"})
    assert topics.access_findings({"a": everything, "b": None}) == []
    (found,) = topics.access_findings({"a": everything - {"WRITE"}})
    assert (found.code, found.what) == ("topic_access", "topic a: we may not write")
