"""How do records come from Kafka's consumer into the event loop?

One thread owns the consumer. Orders to it (follow a partition from an offset, drop it, pause, resume) are obeyed
between two polls, so that what is polled after an order follows from it: every feed bears the turn of the order that
it follows from, and the loop knows what is of a turn before. The loop is woken once for all that one poll brought.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from msgspec import Struct

from ..store.record import Headers
from .errors import BrokerError
from .kafka_client import log
from .kafka_errors import reading_error
from .wire import Record

Place = tuple[str, int]
"""(topic, partition)."""

BATCH = 2_000
OVERHEAD_BYTES = 200
"""What a record costs in memory besides its contents."""


class Order(Struct, frozen=True):
    """Follow the place from an offset on, under a new turn; with None for it, leave the place alone."""

    place: Place
    offset: int | None
    turn: int


class Flow(Struct, frozen=True):
    """Let the place's records wait at the broker, or flow again."""

    place: Place
    paused: bool


class Feed(Struct):
    """What has come of one place: records, up to where, and perhaps that this is the end, or what went wrong."""

    place: Place
    turn: int
    records: list[Record]
    next_offset: int = 0
    end_offset: int = 0
    size: int = 0
    at_end: bool = False
    error: BrokerError | None = None


class Puller:
    """The thread of one consumer. `deliver` is called in it."""

    def __init__(self, consumer: Consumer, deliver: Callable[[list[Feed]], None], *, poll_ms: int, name: str) -> None:
        self._consumer: Any = consumer
        self._deliver = deliver
        self._poll_s = poll_ms / 1_000
        self._orders: queue.SimpleQueue[Order | Flow | None] = queue.SimpleQueue()
        self._turns: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def order(self, order: Order | Flow) -> None:
        self._orders.put(order)

    def close(self) -> None:
        """End; to be called in another thread than the loop's, for it waits."""
        self._orders.put(None)
        self._thread.join()

    # ---- in the thread

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._consumer.close()

    def _turn(self) -> bool:
        """Obey, then poll once. False when it is to end."""
        try:
            if not self._obey():
                return False
            message = self._consumer.poll(self._poll_s) if self._turns else None
            if message is not None:
                self._hand_over([message, *self._consumer.consume(BATCH, 0)])
        except Exception as error:  # noqa: BLE001 - a thread that ends in silence would stop all intake
            log.exception("reading from Kafka failed, and begins anew")
            self._begin_anew(BrokerError(f"reading failed: {error}"))
        return True

    def _obey(self) -> bool:
        """Carry out what was ordered since, the last order for a place only; wait for one if nothing is followed."""
        follows: dict[Place, Order] = {}
        flows: dict[Place, bool] = {}
        with suppress(queue.Empty):
            while True:
                order = self._orders.get(block=not self._turns and not follows)
                if order is None:
                    return False
                if isinstance(order, Order):
                    follows[order.place] = order
                    flows.pop(order.place, None)
                else:
                    flows[order.place] = order.paused
        if follows:
            self._follow(follows)
        for place, paused in flows.items():
            if place in self._turns:
                self._set_flow([place], paused=paused)
        return True

    def _follow(self, follows: dict[Place, Order]) -> None:
        held = [place for place in follows if place in self._turns]
        # A pause would outlast the assignment.
        self._set_flow([place for place in held if place in self._paused], paused=False)
        if held:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in held])
        taken = [TopicPartition(*order.place, order.offset) for order in follows.values() if order.offset is not None]
        if taken:
            self._consumer.incremental_assign(taken)
        for place, order in follows.items():
            if order.offset is None:
                self._turns.pop(place, None)
            else:
                self._turns[place] = order.turn

    def _set_flow(self, places: Sequence[Place], *, paused: bool) -> None:
        if not places:
            return
        partitions = [TopicPartition(*place) for place in places]
        if paused:
            self._consumer.pause(partitions)
            self._paused.update(places)
        else:
            self._consumer.resume(partitions)
            self._paused.difference_update(places)

    def _hand_over(self, messages: Sequence[Any]) -> None:
        feeds: dict[Place, Feed] = {}
        for message in messages:
            place = message.topic(), message.partition()
            if message.error() is not None:
                self._note_error(feeds, place, message)
                continue
            feed = self._feed(feeds, place)
            if feed is not None:
                record = record_of(message)
                feed.records.append(record)
                feed.next_offset = record.offset + 1
                feed.at_end = False
                feed.size += OVERHEAD_BYTES + len(record.value or b"")
        for feed in feeds.values():
            if feed.records and not feed.at_end:
                _, high = self._consumer.get_watermark_offsets(TopicPartition(*feed.place), cached=True)
                feed.end_offset = max(feed.next_offset, high)
        if feeds:
            self._deliver(list(feeds.values()))

    def _note_error(self, feeds: dict[Place, Feed], place: Place, message: Any) -> None:
        error = message.error()
        feed = self._feed(feeds, place)
        if feed is None:
            log.debug("from Kafka's consumer: %s", error)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - so librdkafka names it
            feed.next_offset = feed.end_offset = message.offset()
            feed.at_end = True
        else:
            feed.error = reading_error(error)

    def _feed(self, feeds: dict[Place, Feed], place: Place) -> Feed | None:
        """The feed of a place that is followed."""
        feed = feeds.get(place)
        if feed is None and place in self._turns:
            feed = feeds[place] = Feed(place, self._turns[place], [])
        return feed

    def _begin_anew(self, error: BrokerError) -> None:
        """Follow nothing, and tell all who wait."""
        feeds = [Feed(place, turn, [], error=error) for place, turn in self._turns.items()]
        self._turns.clear()
        self._paused.clear()
        with suppress(KafkaException):
            self._consumer.unassign()
        self._deliver(feeds)


def record_of(message: Any) -> Record:
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        headers_of(message),
    )


def headers_of(message: Any) -> Headers:
    """The headers; none if a name is not UTF-8, which no client of ours writes and the driver can't read."""
    try:
        headers: Iterable[tuple[str, bytes | None]] | None = message.headers()
    except (SystemError, UnicodeDecodeError):
        return ()
    return tuple(headers) if headers else ()
