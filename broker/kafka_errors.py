"""What does an error of Kafka's mean to the caller: final, to be tried again, or an alarm?"""

from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from .errors import BrokerError, OffsetGone, Unpublishable

FINAL: Final[dict[int, str]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: "too_large",
    KafkaError.RECORD_LIST_TOO_LARGE: "too_large",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "no_such_topic",
    KafkaError.UNKNOWN_TOPIC_ID: "no_such_topic",
    KafkaError._UNKNOWN_TOPIC: "no_such_topic",  # noqa: SLF001 - so librdkafka names its own errors
    KafkaError._UNKNOWN_PARTITION: "no_such_topic",  # noqa: SLF001
    KafkaError.TOPIC_EXCEPTION: "no_such_topic",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not_allowed",
    KafkaError.INVALID_RECORD: "not_allowed",
    KafkaError.POLICY_VIOLATION: "not_allowed",
}
"""The errors of one message that it will meet again, and their reasons."""

OF_THE_SET: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
    }
)
"""The broker refuses for these a whole set of records, for the sake of one of them."""

GONE: Final = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})  # noqa: SLF001

LOST: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001
        KafkaError._NO_OFFSET,  # noqa: SLF001
    }
)
"""A commit under these is one for partitions that are another's by now."""

SETTLING: Final = frozenset(
    {
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
"""The group deals its partitions out anew, or its coordinator moves: the same commit goes through afterwards."""


STALE: Final = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._NOENT,  # noqa: SLF001 - "no leaders found"
    }
)
"""The asker knows an old leader, or an old number of its."""


class StaleMetadata(BrokerError):
    """Ask for the leaders, then again."""


class SetRefused(BrokerError):
    """The message stood in a set of which the broker refused at least one; alone, it gets its own answer."""


def publishing_error(error: KafkaError, *, alone: bool) -> BrokerError:
    """The answer to a message that was not published; `alone` if no other stood in its set."""
    code = error.code()
    if code in OF_THE_SET and not alone:
        return SetRefused(text(error))
    if reason := FINAL.get(code):
        return Unpublishable(reason, text(error))
    return BrokerError(text(error))


def reading_error(error: KafkaError) -> BrokerError:
    return OffsetGone(text(error)) if error.code() in GONE else BrokerError(text(error))


def cause(exception: KafkaException) -> Any:
    """The `KafkaError` in an exception of the driver's."""
    return exception.args[0]


def text(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"
