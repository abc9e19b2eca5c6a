"""How does a worker take part in a consumer group of Kafka's?

A member has one consumer and one thread for all calls to it; the partitions are dealt out cooperatively
(`cooperative-sticky`), and a change of hands happens only inside a poll. What has come is kept in the loop, a queue a
partition, and dealt out evenly: one long partition does not starve the others, and a cancelled poll loses nothing.
Beyond a bound the partitions are paused, so a member that takes nothing stays a member.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, TypeVarTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .dealing import portions
from .errors import BrokerError, NotAssigned
from .kafka_client import Connection, log, made
from .kafka_errors import LOST, SETTLING, cause, text
from .kafka_puller import OVERHEAD_BYTES, Place, record_of
from .wire import Record

T = TypeVar("T")
Args = TypeVarTuple("Args")

AHEAD_RECORDS = 2_000
AHEAD_BYTES = 8 * 1024 * 1024
SLICE_S = 0.1
"""A poll holds the thread no longer at once: commits go between."""
REFUSALS = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,  # noqa: SLF001 - so librdkafka names it
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    }
)
"""What will not pass by itself; all else librdkafka tries again."""


class KafkaMember:
    """One member of a group. `session_ms` without a poll or a sign of life, and its partitions are another's."""

    def __init__(
        self, connection: Connection, group: str, topics: Sequence[str], member: str, *, session_ms: int
    ) -> None:
        self._name = f"{member} of {group}"
        self._session_s = session_ms / 1_000
        options = connection.options(
            client_id=member,
            group_id=group,
            partition_assignment_strategy="cooperative-sticky",
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=session_ms,
            max_poll_interval_ms=session_ms,
            heartbeat_interval_ms=max(50, min(3_000, session_ms // 10)),
            # A topic that is made later, or gets more partitions, is found so soon.
            topic_metadata_refresh_interval_ms=3_000,
            fetch_wait_max_ms=100,
            fetch_error_backoff_ms=100,
            fetch_queue_backoff_ms=10,
            queued_min_messages=AHEAD_RECORDS,
            queued_max_messages_kbytes=32 * 1_024,
        )
        self._consumer: Any = made(Consumer, options)
        self._topics = list(topics)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"minutewheel-{group}")
        self._queues: dict[Place, deque[Record]] = {}
        self._floors: dict[Place, int] = {}
        """The offset below which no commit of this member's may go."""
        self._held: frozenset[Place] = frozenset()
        self._count = 0
        self._size = 0
        self._paused = False
        self._turn = 0
        self._left = False
        self._refused: KafkaError | None = None

    async def enter(self) -> None:
        """Begin to join."""
        await self._call(self._subscribe)

    async def poll(self, limit: int, wait_ms: int) -> list[Record]:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while True:
            left = until - loop.time() if limit > 0 else 0.0
            await self._call(self._pull, max(0.0, min(SLICE_S, left)))
            # Here and at once, not in the thread: what a cancelled poll has pulled is dealt out by the next.
            records = self._deal(limit)
            if self._refused is not None and not records:
                refused, self._refused = self._refused, None
                raise BrokerError(f"{self._name}: {text(refused)}")
            if records or left <= SLICE_S:
                return records

    async def commit(self, offsets: Mapping[Place, int]) -> None:
        await self._call(self._commit, dict(offsets))

    def assigned(self) -> frozenset[Place]:
        return self._held

    async def leave(self) -> None:
        if self._left:
            return
        self._left = True
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        finally:
            self._thread.shutdown(wait=False)

    async def _call(self, fn: Callable[[*Args], T], *args: *Args) -> T:
        if self._left:
            raise NotAssigned(f"{self._name} has left")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, fn, *args)
        except (KafkaException, RuntimeError) as error:
            what = text(cause(error)) if isinstance(error, KafkaException) else str(error)
            raise BrokerError(f"{self._name}: {what}") from error

    def _deal(self, limit: int) -> list[Record]:
        """Records of the partitions in turn, as evenly as there are any."""
        ready = [records for records in self._queues.values() if records]
        if not ready or limit <= 0:
            return []
        self._turn += 1
        turn = self._turn % len(ready)
        ready = ready[turn:] + ready[:turn]
        dealt: list[Record] = []
        for records, portion in zip(ready, portions([len(records) for records in ready], limit), strict=True):
            dealt += [records.popleft() for _ in range(portion)]
        self._count -= len(dealt)
        self._size -= sum(map(_size, dealt))
        return dealt

    # ---- in the thread

    def _subscribe(self) -> None:
        self._consumer.subscribe(self._topics, on_assign=self._take, on_revoke=self._give, on_lost=self._give)

    def _pull(self, wait_s: float) -> None:
        """Serve the group, and take what has come, if there is room for it."""
        self._set_flow()
        message = self._consumer.poll(0 if self._count else wait_s)
        while message is not None:
            self._take_in([message])
            room = AHEAD_RECORDS - self._count
            self._take_in(self._consumer.consume(room, 0) if room > 0 and self._size < AHEAD_BYTES else ())
            message = self._consumer.poll(0) if self._count < AHEAD_RECORDS and self._size < AHEAD_BYTES else None

    def _take_in(self, messages: Sequence[Any]) -> None:
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() in REFUSALS or error.fatal():
                    self._refused = error
                log.debug("%s: %s", self._name, error)
                continue
            record = record_of(message)
            place = record.topic, record.partition
            if (records := self._queues.get(place)) is not None:
                self._floors.setdefault(place, record.offset)
                records.append(record)
                self._count += 1
                self._size += _size(record)

    def _set_flow(self) -> None:
        full = self._count >= AHEAD_RECORDS or self._size >= AHEAD_BYTES
        drained = self._count * 2 < AHEAD_RECORDS and self._size * 2 < AHEAD_BYTES
        if full and not self._paused:
            self._consumer.pause([TopicPartition(*place) for place in self._held])
            self._paused = True
        elif self._paused and drained:
            self._consumer.resume([TopicPartition(*place) for place in self._held])
            self._paused = False

    def _take(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        """The group gives this member more partitions."""
        consumer.incremental_assign(partitions)
        if self._paused:
            consumer.pause(partitions)
        self._queues.update({place_of(one): deque() for one in partitions})
        self._held = frozenset(self._queues)

    def _give(self, consumer: Any, partitions: Sequence[TopicPartition]) -> None:
        """The group takes partitions away, or has dealt them out to others already."""
        if self._paused:
            consumer.resume(partitions)
        for place in map(place_of, partitions):
            dropped = self._queues.pop(place, ())
            self._floors.pop(place, None)
            self._count -= len(dropped)
            self._size -= sum(map(_size, dropped))
        self._held = frozenset(self._queues)
        consumer.incremental_unassign(partitions)

    def _commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit, while the group may be dealing out anew; what is not this member's any more is left out."""
        until = time.monotonic() + self._session_s
        while mine := {place: at for place, at in offsets.items() if at > self._floors.get(place, at)}:
            code = self._committed(mine)
            if code is None or code in LOST:
                return
            if code not in SETTLING or time.monotonic() > until:
                raise KafkaException(KafkaError(code))
            self._pull(SLICE_S)

    def _committed(self, offsets: Mapping[Place, int]) -> int | None:
        """Commit once; the code of the error, if there is one."""
        wanted = [TopicPartition(*place, at) for place, at in offsets.items()]
        try:
            answers = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            code: int = cause(error).code()
            return code
        codes: list[int] = [answer.error.code() for answer in answers if answer.error is not None]
        if not codes:
            self._floors.update(offsets)
        return codes[0] if codes else None

    def _end(self) -> None:
        """Leave the group and end the consumer."""
        try:
            self._consumer.close()
        finally:
            self._queues.clear()
            self._held = frozenset()


def place_of(partition: TopicPartition) -> Place:
    return partition.topic, partition.partition


def _size(record: Record) -> int:
    return OVERHEAD_BYTES + len(record.value or b"")
