"""What is published for a task that was let go, and what became of it."""

import pytest
from minutewheel.broker.due import due_message, parse_due
from minutewheel.broker.errors import BrokerError, Unpublishable
from minutewheel.broker.outcome import Outcome, Reported, decode_outcome
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.publishing import landed, outgoing
from minutewheel.store.record import NO_HEADERS, Filed, Options, encode_options, pack

pytestmark = pytest.mark.pure

TOPICS = Topics()
NOW_MS = 1_790_000_000_000
SHARD = shard_of("acme/1")
OPTIONS = encode_options(Options(starts=2, receipt="r"))
THERE = Produced(0, 7, NOW_MS)
DOWN = BrokerError("down")
TOO_LARGE = Unpublishable("too_large", "1000001 bytes")


def due(filing: int = 9, *, queue: str = "mail", expires_ms: int = 0) -> Due:
    record = pack(Filed(1, 5, 3, 2, expires_ms, "acme/1", queue, OPTIONS, NO_HEADERS, b"body"))
    return Due(SHARD, NOW_MS // 60_000, NOW_MS, filing, record)


def outcome(message: Message) -> Outcome:
    record = Record(message.topic, SHARD, 0, NOW_MS, message.key, message.value, message.headers)
    decoded = decode_outcome(record, SHARD, 1, TOPICS)
    assert isinstance(decoded, Reported)
    assert (message.topic, message.partition) == (TOPICS.outcomes, SHARD)
    return decoded.outcome


def test_a_due_task_is_published_as_its_due_record_and_fired_when_that_is_acknowledged() -> None:
    one = due()
    sent = outgoing([one], NOW_MS, TOPICS, frozenset())
    assert [out.message for out in sent] == [due_message(TOPICS, SHARD, one.minute, NOW_MS, 9, one.record)]
    result = landed(sent, [THERE], TOPICS)
    assert (result.fired, result.next, result.back) == ([one], [], [])


@pytest.mark.parametrize("late_ms", [1, 86_400_000])
def test_one_whose_start_deadline_has_passed_becomes_an_outcome_of_its_filing(late_ms: int) -> None:
    one = due(expires_ms=NOW_MS - late_ms)
    sent = outgoing([one], NOW_MS, TOPICS, frozenset())
    said = outcome(sent[0].message)
    assert (said.kind, said.filing, said.origin, said.attempt, said.starts) == ("expired", 9, 5, 3, 2)
    assert said.payload == b"body"
    assert not said.retryable
    assert landed(sent, [THERE], TOPICS).fired == [one]


def test_at_its_deadline_it_still_starts() -> None:
    """Decision 3 of the cases: a lateness exactly equal to the grace still runs."""
    (out,) = outgoing([due(expires_ms=NOW_MS)], NOW_MS, TOPICS, frozenset())
    assert out.message.topic == TOPICS.due("mail")


def test_one_that_can_never_be_published_becomes_an_outcome_with_its_reason_and_its_neighbours_fire() -> None:
    dues = [due(1), due(2), due(3)]
    result = landed(outgoing(dues, NOW_MS, TOPICS, frozenset()), [THERE, TOO_LARGE, THERE], TOPICS)
    assert result.fired == [dues[0], dues[2]]
    assert result.back == []
    said = outcome(result.next[0].message)
    assert (said.kind, said.filing) == ("unpublishable", 2)
    assert said.reason == "too_large: 1000001 bytes"
    assert landed(result.next, [THERE], TOPICS).fired == [dues[1]]


def test_what_the_broker_did_not_take_comes_back() -> None:
    dues = [due(1), due(2)]
    result = landed(outgoing(dues, NOW_MS, TOPICS, frozenset()), [DOWN, THERE], TOPICS)
    assert (result.fired, result.next, result.back) == ([dues[1]], [], [dues[0]])


@pytest.mark.parametrize("answer", [DOWN, TOO_LARGE])
def test_an_outcome_that_was_not_taken_comes_back_for_there_is_nothing_else_to_say(answer: BrokerError) -> None:
    one = due(expires_ms=1)
    result = landed(outgoing([one], NOW_MS, TOPICS, frozenset()), [answer], TOPICS)
    assert (result.fired, result.next, result.back) == ([], [], [one])


def test_a_task_of_a_silent_queue_settles_after_the_second_acknowledgement() -> None:
    silent, other = due(1, queue="metrics"), due(2)
    sent = outgoing([silent, other], NOW_MS, TOPICS, frozenset({"metrics"}))
    assert [out.message.topic for out in sent] == [TOPICS.due("metrics"), TOPICS.due("mail")]
    result = landed(sent, [THERE, THERE], TOPICS)
    assert result.fired == [other]
    said = outcome(result.next[0].message)
    assert (said.kind, said.filing, said.reason) == ("done", 1, "")
    assert landed(result.next, [THERE], TOPICS).fired == [silent]


@pytest.mark.parametrize(("answer", "kind"), [(TOO_LARGE, "unpublishable"), (THERE, "done")])
def test_a_task_of_a_silent_queue_settles_once_whatever_became_of_it(answer: Produced | BrokerError, kind: str) -> None:
    sent = outgoing([due(queue="metrics")], NOW_MS, TOPICS, frozenset({"metrics"}))
    result = landed(sent, [answer], TOPICS)
    assert [outcome(out.message).kind for out in result.next] == [kind]
    assert [out.settles for out in result.next] == [True]


def test_an_expired_task_of_a_silent_queue_is_not_also_done() -> None:
    sent = outgoing([due(queue="metrics", expires_ms=1)], NOW_MS, TOPICS, frozenset({"metrics"}))
    assert [outcome(out.message).kind for out in sent] == ["expired"]
    assert landed(sent, [THERE], TOPICS).next == []


def test_what_is_published_names_the_filing_that_workers_run_once() -> None:
    (out,) = outgoing([due(9)], NOW_MS, TOPICS, frozenset())
    message = out.message
    delivered = parse_due(Record(message.topic, 0, 0, NOW_MS, message.key, message.value, message.headers))
    assert (delivered.filing, delivered.idempotency_key, delivered.attempt) == (9, "acme/1:5", 3)
