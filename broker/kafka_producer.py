"""How are messages published to Kafka, and each told what became of it?

By librdkafka's idempotent producer with `acks=all`. Each message has its own callback: reports of failures come out of
order (one that timed out in the queue may be reported before an older one that is still in flight), so a count of the
reports could take a loss for a success.

Reports are served in the event loop, by a poll every few milliseconds while something is outstanding. A thread that
polls has to get the interpreter for every single callback; beside a busy loop, batches of 2,000 then took up to
minutes when tried. So the loop is never woken from outside, and a poll serves whatever has come meanwhile.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from .errors import BrokerError, Unpublishable
from .kafka_client import Connection, log, made
from .kafka_errors import SetRefused, cause, publishing_error, text
from .port import Produced
from .wire import Message

CHUNK = 2_000
"""So many messages are handed over in one turn of the loop."""
POLL_MIN_S = 0.002
POLL_MAX_S = 0.032
POLL_IDLE_S = 1.0
ANY_PARTITION = -1

Answer = Produced | BrokerError


class Batch:
    """What one call wants published, and the answers to it."""

    def __init__(self, size: int, *, alone: bool) -> None:
        self.answers: list[Answer | None] = [None] * size
        self.failures = 0
        self.left = size
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._alone = alone

    def report(self, index: int, error: KafkaError | None, message: Any) -> None:
        """Take the delivery report of one message: the hot path, so success is noted without another call."""
        if error is not None:
            self.fail(index, publishing_error(error, alone=self._alone))
            return
        self.answers[index] = Produced(message.partition(), message.offset(), message.timestamp()[1])
        self.left -= 1
        if not self.left:
            self._end()

    def fail(self, index: int, error: BrokerError) -> None:
        self.failures += 1
        self.settle(index, error)

    def settle(self, index: int, answer: Answer) -> None:
        self.answers[index] = answer
        self.left -= 1
        if not self.left:
            self._end()

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def all_answers(self) -> list[Answer]:
        return [answer for answer in self.answers if answer is not None]


class Publisher:
    """A producer, replaced when it is beyond repair. For one event loop; `close` ends it.

    `message_timeout_ms` bounds how long a message may wait and be sent again; `queue_bytes` how much may be waiting.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        message_timeout_ms: int,
        max_message_bytes: int,
        queue_bytes: int,
        linger_ms: int,
    ) -> None:
        self._options = connection.options(
            enable_idempotence=True,
            acks="all",
            partitioner="murmur2_random",
            linger_ms=linger_ms,
            message_timeout_ms=message_timeout_ms,
            message_max_bytes=max_message_bytes,
            queue_buffering_max_messages=1_000_000,
            # A queue that one message overfills would be full for ever.
            queue_buffering_max_kbytes=max(queue_bytes, 2 * max_message_bytes) // 1_024 + 1,
            topic_metadata_propagation_max_ms=max(1, min(2_000, message_timeout_ms // 2)),
        )
        self._loop = asyncio.get_running_loop()
        self._broken = False
        self.purges = 0
        """How often all was discarded."""
        self._closed = False
        self._room = asyncio.Event()
        self._retired: list[Any] = []
        self._alone: Any = None
        self._producer = self._make()
        self._pause_s = POLL_IDLE_S
        self._poll_later = self._loop.call_later(self._pause_s, self._poll)

    async def publish(self, messages: Sequence[Message], purges: int | None = None) -> list[Answer]:
        """One answer each, when the last is reported. No error leaves this but in an answer.

        `purges` is what the attribute was when the caller made up its mind: a purge since then meant these too.
        """
        if purges is None:
            purges = self.purges
        batch = Batch(len(messages), alone=False)
        await self._hand_over(messages, batch, purges, alone=False)
        if batch.left:
            await batch.done
        else:
            await asyncio.sleep(0)  # refused at once: who tries again must not keep the loop from what mends it
        answers = batch.all_answers()
        if batch.failures:
            await self._ask_alone(messages, answers, purges)
        return answers

    def purge(self) -> None:
        """Discard all that is unsent or unreported; the answers to it come at once, and its callers decide."""
        if self._closed:
            return
        self.purges += 1
        for producer in (self._producer, self._alone):
            if producer is not None:
                producer.purge(blocking=False)
        self._room.set()
        self._poll_soon()

    def outstanding(self) -> int:
        """How many messages have no answer yet."""
        return sum(len(producer) for producer in self._producers())

    async def close(self) -> None:
        """Discard what is outstanding, and end. Safe to call again."""
        if self._closed:
            return
        self.purge()
        self._closed = True
        until = self._loop.time() + POLL_IDLE_S
        while self.outstanding() and self._loop.time() < until:  # noqa: ASYNC110 - the poll beside it empties the queue
            await asyncio.sleep(POLL_MIN_S)
        self._poll_later.cancel()
        await asyncio.gather(*(asyncio.to_thread(producer.close) for producer in self._producers()))

    # ---- handing over

    async def _hand_over(self, messages: Sequence[Message], batch: Batch, purges: int, *, alone: bool) -> None:
        """Back-pressure stands here: while the queue is full, this waits."""
        at = 0
        while at < len(messages):
            if self._closed or purges != self.purges:
                for index in range(at, len(messages)):
                    batch.fail(index, BrokerError("discarded before it was sent"))
                return
            if at:
                await asyncio.sleep(0)
            producer = self._one_by_one() if alone else self._producer
            reached = self._put(producer, messages, at, batch)
            self._poll_soon()
            if reached < min(at + CHUNK, len(messages)):
                self._room.clear()
                await self._room.wait()
            at = reached

    @staticmethod
    def _put(producer: Any, messages: Sequence[Message], at: int, batch: Batch) -> int:
        """Hand some over from an index on; the answer is how far it got."""
        produce, report = producer.produce, batch.report
        end = min(at + CHUNK, len(messages))
        for index in range(at, end):
            message = messages[index]
            number = message.partition
            if number is None:
                number = ANY_PARTITION
            headers = message.headers
            if headers and not legible(headers):
                batch.fail(index, Unpublishable("not_allowed", "a header's name holds what the driver can't carry"))
                continue
            try:
                produce(
                    message.topic,
                    message.value,
                    message.key,
                    number,
                    partial(report, index),
                    headers=list(headers),
                )
            except BufferError:
                return index
            except KafkaException as error:
                batch.fail(index, publishing_error(cause(error), alone=True))
        return end

    async def _ask_alone(self, messages: Sequence[Message], answers: list[Answer], purges: int) -> None:
        """Publish those whose whole set was refused in sets of one, so that each gets the answer that is its own."""
        doubtful = [index for index, answer in enumerate(answers) if isinstance(answer, SetRefused)]
        if not doubtful or self._closed:
            return
        batch = Batch(len(doubtful), alone=True)
        await self._hand_over([messages[index] for index in doubtful], batch, purges, alone=True)
        if batch.left:
            await batch.done
        for index, answer in zip(doubtful, batch.all_answers(), strict=True):
            answers[index] = answer

    # ---- reports

    def _poll(self) -> None:
        """Serve what has come, and come again: soon while something is outstanding."""
        reported = sum(map(self._serve, self._producers()))
        if reported:
            self._room.set()
        if self._broken:
            self._replace()
        if not self.outstanding():
            self._pause_s = POLL_IDLE_S
        else:
            self._pause_s = POLL_MIN_S if reported else min(2 * self._pause_s, POLL_MAX_S)
        self._bury()
        self._poll_later = self._loop.call_later(self._pause_s, self._poll)

    def _serve(self, producer: Any) -> int:
        """Serve one producer's reports. A fatal error is raised here, between two reports, and told to no callback."""
        try:
            reported: int = producer.poll(0)
        except KafkaException as error:
            log.error("the producer is replaced after an error: %s", text(cause(error)))
            self._broken = self._broken or producer not in self._retired
            return 1
        return reported

    def _poll_soon(self) -> None:
        if self._pause_s > POLL_MIN_S:
            self._poll_later.cancel()
            self._pause_s = POLL_MIN_S
            self._poll_later = self._loop.call_later(POLL_MIN_S, self._poll)

    # ---- makings

    def _producers(self) -> list[Any]:
        return [one for one in (self._producer, self._alone, *self._retired) if one is not None]

    def _make(self, **more: int) -> Any:
        fitting = {name.replace("_", "."): value for name, value in more.items()}
        return made(Producer, {**self._options, **fitting})

    def _one_by_one(self) -> Any:
        """The producer whose sets are of one message; few ever need it."""
        if self._alone is None:
            self._alone = self._make(batch_num_messages=1)
        return self._alone

    def _replace(self) -> None:
        """Make the producers anew. What the old ones have not reported may stand in the log or not."""
        self._broken = False
        old = [producer for producer in (self._producer, self._alone) if producer is not None]
        self._alone = None
        self._producer = self._make()
        for producer in old:
            producer.purge(blocking=False)
        self._retired += old
        self._room.set()

    def _bury(self) -> None:
        """Let go of the retired that have reported all; their end is waited for in a thread."""
        for producer in [one for one in self._retired if not len(one)]:
            self._retired.remove(producer)
            self._loop.run_in_executor(None, producer.close)


def legible(headers: Sequence[tuple[str, bytes | None]]) -> bool:
    """Can the driver carry these names? It ends the process over a lone surrogate, and a name at a NUL."""
    for name, _ in headers:  # noqa: SIM110 - the hot path: no generator; what is printable needs no closer look
        if not name.isprintable() and ("\x00" in name or not _encodable(name)):
            return False
    return True


def _encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
