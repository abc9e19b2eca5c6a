"""How does one ask Kafka about its topics, and have them made?

Questions go through librdkafka's admin client, whose answers come from a thread of its own as futures; all those of
one question wake the event loop once. `BrokerError` for what is not answered.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, admin
from msgspec import Struct

from .errors import BrokerError
from .kafka_client import Connection, made
from .kafka_errors import STALE, StaleMetadata, cause, text
from .kafka_topics import TopicFound, TopicPlan

T = TypeVar("T")

STALE_PAUSE_S = 0.2

kafka: Any = admin
"""Its package does not say what it exports."""


class Described(Struct, frozen=True):
    """A topic of this name as it was made: another making has another id."""

    id: str
    partitions: int
    replication: int


async def answered(futures: Collection["Future[Any]"]) -> list[Any]:
    """The result or the `KafkaException` of each, when the last has one; the loop is woken once.

    What the driver raises otherwise (it does not find its way in an answer: "Results length … is different") is no
    answer either.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    guard, left = threading.Lock(), len(futures)

    def finish() -> None:
        if not done.done():
            done.set_result(None)

    def count(_: object) -> None:
        nonlocal left
        with guard:
            left -= 1
            last = left == 0
        if last:
            loop.call_soon_threadsafe(finish)

    for future in futures:
        future.add_done_callback(count)
    if futures:
        await done
    return [_refusal(error) if (error := future.exception()) else future.result() for future in futures]


def _refusal(error: BaseException) -> KafkaException:
    if isinstance(error, KafkaException):
        return error
    return KafkaException(KafkaError(KafkaError._FAIL, f"{type(error).__name__}: {error}"))  # noqa: SLF001 - its name


class Admin:
    """The questions that the twin asks of a cluster."""

    def __init__(self, connection: Connection) -> None:
        self._client: Any = made(kafka.AdminClient, connection.options())
        self._answer_s = connection.answer_ms / 1_000

    def poll(self) -> None:
        """Pass on what librdkafka has to log."""
        self._client.poll(0)

    async def topics(self) -> dict[str, int]:
        """The topics, without Kafka's own."""
        listed = await asyncio.to_thread(self._asked, lambda: self._client.list_topics(timeout=self._answer_s))
        return {
            name: len(topic.partitions)
            for name, topic in listed.topics.items()
            if topic.error is None and not name.startswith("__")
        }

    async def describe(self, names: Collection[str]) -> dict[str, Described | None]:
        """Each topic as it is now; None for one that is not there."""
        ordered = sorted(names)
        asked = self._asked(
            lambda: self._client.describe_topics(TopicCollection(ordered), request_timeout=self._answer_s)
        )
        answers = dict(zip(asked, await answered(asked.values()), strict=True))
        return {name: _described(answers[name]) for name in ordered}

    async def bounds(self, topic: str, partitions: Sequence[int]) -> list[tuple[int, int]]:
        """Start and end of each partition, as those see them who read committed records only.

        A broker that was restarted refuses who has the leaders' old numbers, and librdkafka asks for the new ones by
        itself only after minutes; and for a moment it refuses who has the new ones, for it has not learnt them itself.
        """
        until = time.monotonic() + self._answer_s
        while True:
            try:
                starts, ends = await asyncio.gather(
                    self._offsets(topic, partitions, kafka.OffsetSpec.earliest()),
                    self._offsets(topic, partitions, kafka.OffsetSpec.latest()),
                )
            except StaleMetadata:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(STALE_PAUSE_S)
                await asyncio.to_thread(self._asked, lambda: self._client.list_topics(topic, timeout=self._answer_s))
            else:
                return list(zip(starts, ends, strict=True))

    async def create(self, plans: Mapping[str, TopicPlan]) -> None:
        """Make those that are missing."""
        new = [
            kafka.NewTopic(name, each.partitions, each.replication, config=dict(each.options))
            for name, each in plans.items()
        ]
        asked = self._asked(lambda: self._client.create_topics(new, request_timeout=self._answer_s))
        _raise_any(await answered(asked.values()), but=KafkaError.TOPIC_ALREADY_EXISTS)

    async def delete(self, topic: str) -> None:
        asked = self._asked(lambda: self._client.delete_topics([topic], request_timeout=self._answer_s))
        _raise_any(await answered(asked.values()), but=KafkaError.UNKNOWN_TOPIC_OR_PART)

    async def found(self, names: Collection[str]) -> dict[str, TopicFound | None]:
        """Each topic with its options; None for one that is not there."""
        described = await self.describe(names)
        there = {name: topic for name, topic in described.items() if topic is not None}
        if not there:
            return dict.fromkeys(described)
        resources = [kafka.ConfigResource(kafka.ResourceType.TOPIC, name) for name in there]
        asked = self._asked(lambda: self._client.describe_configs(resources, request_timeout=self._answer_s))
        answers = await answered(asked.values())
        _raise_any(answers)
        found: dict[str, TopicFound | None] = dict.fromkeys(described)
        for (name, topic), options in zip(there.items(), answers, strict=True):
            plain = {option.name: option.value for option in options.values()}
            found[name] = TopicFound(topic.partitions, topic.replication, plain)
        return found

    async def brokers(self) -> tuple[int, dict[str, str]]:
        """How many brokers there are, and the options of the first."""
        (cluster,) = await answered(
            [self._asked(lambda: self._client.describe_cluster(request_timeout=self._answer_s))]
        )
        _raise_any([cluster])
        first = kafka.ConfigResource(kafka.ResourceType.BROKER, str(cluster.nodes[0].id))
        asked = self._asked(lambda: self._client.describe_configs([first], request_timeout=self._answer_s))
        (options,) = answers = await answered(asked.values())
        _raise_any(answers)
        return len(cluster.nodes), {option.name: option.value for option in options.values() if option.value}

    async def allowed(self, names: Collection[str]) -> dict[str, frozenset[str] | None]:
        """What we may do with each topic (READ, WRITE, …); None where the brokers don't say."""
        ordered = sorted(names)
        if not ordered:
            return {}
        asked = self._asked(
            lambda: self._client.describe_topics(
                TopicCollection(ordered), include_authorized_operations=True, request_timeout=self._answer_s
            )
        )
        answers = await answered(asked.values())
        _raise_any(answers)
        return {name: _operations(answer) for name, answer in zip(asked, answers, strict=True)}

    async def _offsets(self, topic: str, partitions: Sequence[int], spec: Any) -> list[int]:
        wanted = {TopicPartition(topic, partition): spec for partition in partitions}
        committed = IsolationLevel.READ_COMMITTED
        asked = self._asked(
            lambda: self._client.list_offsets(wanted, isolation_level=committed, request_timeout=self._answer_s)
        )
        answers = await answered(asked.values())
        _raise_any(answers)
        offsets = {place.partition: info.offset for place, info in zip(asked, answers, strict=True)}
        return [offsets[partition] for partition in partitions]

    @staticmethod
    def _asked(ask: Callable[[], T]) -> T:
        try:
            return ask()
        except KafkaException as error:
            raise BrokerError(text(cause(error))) from error


def _described(answer: Any) -> Described | None:
    if isinstance(answer, KafkaException):
        if cause(answer).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise BrokerError(text(cause(answer))) from answer
    copies = min((len(partition.replicas) for partition in answer.partitions), default=0)
    return Described(str(answer.topic_id), len(answer.partitions), copies)


def _operations(topic: Any) -> frozenset[str] | None:
    said = topic.authorized_operations
    return None if said is None else frozenset(operation.name for operation in said)


def _raise_any(answers: Sequence[Any], *, but: int | None = None) -> None:
    for answer in answers:
        if isinstance(answer, KafkaException) and (code := cause(answer).code()) != but:
            raise (StaleMetadata if code in STALE else BrokerError)(text(cause(answer))) from answer
