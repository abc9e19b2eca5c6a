import pytest
from confluent_kafka import KafkaError, KafkaException
from minutewheel.broker.errors import BrokerError, OffsetGone, Unpublishable
from minutewheel.broker.kafka_errors import SetRefused, cause, publishing_error, reading_error


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, "too_large"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "no_such_topic"),
        (KafkaError._UNKNOWN_PARTITION, "no_such_topic"),
        (KafkaError.TOPIC_EXCEPTION, "no_such_topic"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "not_allowed"),
        (KafkaError.INVALID_RECORD, "not_allowed"),
    ],
)
def test_some_errors_are_final_for_their_message(code: int, reason: str) -> None:
    error = publishing_error(KafkaError(code), alone=True)
    assert isinstance(error, Unpublishable)
    assert error.reason == reason


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._PURGE_QUEUE,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._FATAL,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ],
)
def test_all_others_may_be_tried_again(code: int) -> None:
    assert type(publishing_error(KafkaError(code), alone=True)) is BrokerError


def test_a_set_that_is_refused_says_nothing_final_of_its_messages() -> None:
    assert isinstance(publishing_error(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), alone=False), SetRefused)
    denied = publishing_error(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), alone=False)
    assert isinstance(denied, Unpublishable)


def test_an_offset_that_is_gone_is_told_from_a_log_that_can_not_be_read() -> None:
    for code in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
        assert isinstance(reading_error(KafkaError(code)), OffsetGone)
    assert type(reading_error(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))) is BrokerError


def test_the_cause_in_an_exception_is_the_drivers_error() -> None:
    error = KafkaError(KafkaError._TRANSPORT)
    assert cause(KafkaException(error)) is error
