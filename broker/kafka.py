"""How does Kafka serve as the broker of a fleet?

`KafkaBroker` is the port over librdkafka's clients: a producer (`kafka_producer`), two readers by assignment, one that
follows logs and one that looks at single places (`kafka_reader`), the members of groups (`kafka_group`) and an admin
client. Which topics there are, and which making of its name each is, is told by `kafka_catalog`.

Followed topics are looked at once a second. One that was made anew meanwhile fails the fetches that wait on it, and
the next ones bear the new incarnation; until then the consumer would read on only if the new log had grown past the
old one's offset within that second, and otherwise finds the offset gone.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from .errors import BrokerError, Unpublishable
from .kafka_admin import Admin
from .kafka_catalog import Catalog, Incarnations
from .kafka_client import Connection, log
from .kafka_group import KafkaMember
from .kafka_looks import SharedLooks
from .kafka_producer import Publisher
from .kafka_reader import Reader
from .kafka_topics import CLOCK, META, TopicFault, TopicLimits, faults, own_topics, plan
from .port import Bounds, Fetched, Produced
from .wire import Message, Record

WATCH_S = 1.0
SETTLE_S = 0.05
"""How long the brokers are given to tell each other of a topic, before they are asked again."""
SETTLE_MAX_S = 30.0
"""How long busy brokers may take to make or drop some hundred partitions."""


class KafkaBroker:
    """The real broker: a `Broker` over Kafka, for one event loop. Made by `open`; `close` ends all that it began."""

    def __init__(
        self,
        connection: Connection,
        prefix: str,
        *,
        limits: TopicLimits,
        message_timeout_ms: int,
        max_message_bytes: int,
        queue_bytes: int,
        linger_ms: int,
        session_ms: int,
    ) -> None:
        self._connection = connection
        self._prefix = prefix
        self._limits = limits
        self._session_ms = session_ms
        self._max_message_bytes = max_message_bytes
        self._admin = Admin(connection)
        self._publisher = Publisher(
            connection,
            message_timeout_ms=message_timeout_ms,
            max_message_bytes=max_message_bytes,
            queue_bytes=queue_bytes,
            linger_ms=linger_ms,
        )
        group = f"{prefix}-reader"
        self._follower = Reader(connection, group=group, fetch_wait_ms=50, poll_ms=20, idle_s=10.0)
        self._looker = Reader(connection, group=group, fetch_wait_ms=10, poll_ms=5, idle_s=1.0)
        self._catalog = Catalog(self._admin.describe)
        self._incarnations = Incarnations(f"{prefix}.{META}", self._look_at, self.produce)
        self._watched: dict[str, tuple[str, int]] = {}
        self._looks = SharedLooks(self._bounds)
        """The topics that are read, with the id and the number of their making."""
        self._members: list[KafkaMember] = []
        self._watching = asyncio.create_task(self._watch())

    @classmethod
    async def open(
        cls,
        connection: Connection,
        prefix: str,
        *,
        limits: TopicLimits | None = None,
        message_timeout_ms: int = 3_000,
        max_message_bytes: int = 1_000_000,
        queue_bytes: int = 256 * 1024 * 1024,
        linger_ms: int = 2,
        session_ms: int = 10_000,
    ) -> Self:
        """Make the clients; the brokers need not be there yet.

        `message_timeout_ms` must stay below the margin of a lease: what is not acknowledged by then is given up.
        `max_message_bytes` (by default a little less than the topics') is the most that one message may have.
        `BrokerError` if the options are not librdkafka's.
        """
        return cls(
            connection,
            prefix,
            limits=limits or TopicLimits(),
            message_timeout_ms=message_timeout_ms,
            max_message_bytes=max_message_bytes,
            queue_bytes=queue_bytes,
            linger_ms=linger_ms,
            session_ms=session_ms,
        )

    async def close(self) -> None:
        """Discard what is unsent, and end all clients."""
        self._watching.cancel()
        with suppress(asyncio.CancelledError):
            await self._watching
        await asyncio.gather(*(member.leave() for member in self._members))
        await asyncio.gather(self._publisher.close(), self._follower.close(), self._looker.close())

    # ---- publishing

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        if not messages:
            return []
        # Before the first wait: trust may end while the topics are looked for.
        purges = self._publisher.purges
        names = {message.topic for message in messages}
        try:
            await self._catalog.find(names)
        except BrokerError as error:
            return [error] * len(messages)
        if all(self._catalog.known(name) for name in names):
            answers = await self._publisher.publish(messages, purges)
        else:
            answers = await self._produce_known(messages, purges)
        if not all(isinstance(answer, Produced) for answer in answers):
            await self._reconsider(messages, answers)
        return answers

    def purge(self) -> None:
        self._publisher.purge()

    async def _produce_known(self, messages: Sequence[Message], purges: int) -> list[Produced | BrokerError]:
        """Publish those whose topics are there."""
        known = {message.topic for message in messages if self._catalog.known(message.topic)}
        fit = [message for message in messages if message.topic in known]
        published = iter(await self._publisher.publish(fit, purges) if fit else ())
        return [next(published) if message.topic in known else self._not_there(message) for message in messages]

    def _not_there(self, message: Message) -> Unpublishable:
        size = len(message.key or b"") + len(message.value or b"")
        if size > self._max_message_bytes:
            return Unpublishable("too_large", f"{size} bytes of at most {self._max_message_bytes}")
        return Unpublishable("no_such_topic", f"there is no topic {message.topic!r}")

    async def _reconsider(self, messages: Sequence[Message], answers: list[Produced | BrokerError]) -> None:
        """A failure puts in doubt what is known of its topic; that there is none is final only after another look."""
        doubtful: list[int] = []
        for index, answer in enumerate(answers):
            if isinstance(answer, Unpublishable):
                if answer.reason == "no_such_topic":
                    doubtful.append(index)
            elif isinstance(answer, BrokerError):
                self._catalog.doubt(messages[index].topic)
        if not doubtful:
            return
        try:
            await self._catalog.look({messages[index].topic for index in doubtful})
        except BrokerError as error:
            for index in doubtful:
                answers[index] = error
            return
        for index in doubtful:
            topic, number = messages[index].topic, messages[index].partition
            there = self._catalog.known(topic)
            if there is not None and (number is None or 0 <= number < there.partitions):
                answers[index] = BrokerError(f"topic {topic!r} was not known to the producer yet")

    # ---- reading

    async def fetch(self, topic: str, partition: int, offset: int, limit: int, wait_ms: int) -> Fetched:
        incarnation = await self._incarnation(topic, partition)
        if limit <= 0:
            (bounds,) = await self.bounds(topic, [partition])
            return Fetched((), offset, bounds.end, bounds.incarnation)
        reader = self._follower if wait_ms > 0 else self._looker
        try:
            records, next_offset, end_offset = await reader.read((topic, partition), offset, limit, wait_ms)
        except BrokerError:
            self._watched.pop(topic, None)
            raise
        return Fetched(records, next_offset, end_offset, incarnation)

    async def bounds(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        return await self._looks.bounds(topic, partitions) if partitions else []

    async def _bounds(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        offsets, (_, incarnation) = await asyncio.gather(self._admin.bounds(topic, partitions), self._making(topic))
        return [Bounds(start, end, incarnation) for start, end in offsets]

    async def _incarnation(self, topic: str, partition: int) -> int:
        """Which making of the topic a fetch reads. `BrokerError` if there is no such place."""
        watched = self._watched.get(topic)
        if watched is None:
            watched = self._watched[topic] = await self._making(topic)
        known = self._catalog.known(topic)
        if known is not None and not 0 <= partition < known.partitions:
            raise BrokerError(f"topic {topic!r} has no partition {partition}")
        return watched[1]

    async def _making(self, topic: str) -> tuple[str, int]:
        """The id of the topic now, and its number."""
        await self._catalog.look([topic])
        found = self._catalog.known(topic)
        if found is None:
            raise BrokerError(f"there is no topic {topic!r}")
        return found.id, await self._incarnations.number(topic, found.id)

    async def _look_at(
        self, topic: str, partition: int, offset: int, limit: int, wait_ms: int
    ) -> tuple[Sequence[Record], int, int]:
        """Read the log of the makings, which has no number itself."""
        await self._catalog.find([topic])
        if self._catalog.known(topic) is None:
            raise BrokerError(f"there is no topic {topic!r}: `minutewheel setup` makes it")
        return await self._looker.read((topic, partition), offset, limit, wait_ms)

    async def _watch(self) -> None:
        """Look at the topics that are read, again and again."""
        while True:
            await asyncio.sleep(WATCH_S)
            self._admin.poll()
            read = {topic for topic, _ in self._follower.places() | self._looker.places()}
            for topic in self._watched.keys() - read:
                del self._watched[topic]
            try:
                await self._catalog.look(list(self._watched))
                self._forget_old()
            except BrokerError as error:
                log.debug("the topics could not be looked at: %s", error)
            except Exception:  # noqa: BLE001 - without the watch, a topic made anew would go unnoticed
                log.exception("the topics could not be looked at")

    def _forget_old(self) -> None:
        """End the reading of topics that are not there any more, or are others by now."""
        for topic, (topic_id, _) in list(self._watched.items()):
            known = self._catalog.known(topic)
            if known is None or known.id != topic_id:
                del self._watched[topic]
                error = BrokerError(f"topic {topic!r} was deleted, or made anew")
                self._follower.forget(topic, error)
                self._looker.forget(topic, error)

    # ---- groups

    async def join(self, group: str, topics: Sequence[str], member: str) -> KafkaMember:
        joined = KafkaMember(self._connection, group, topics, member, session_ms=self._session_ms)
        self._members.append(joined)
        await joined.enter()
        return joined

    # ---- topics

    async def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create those that are missing, and the twin's own; each as the table of its kind says."""
        wanted = {**own_topics(self._prefix), **topics}
        await self._catalog.look(list(wanted))
        missing = {name: number for name, number in wanted.items() if self._catalog.known(name) is None}
        if missing:
            await self._admin.create(
                {name: plan(self._prefix, name, number, self._limits) for name, number in missing.items()}
            )
            await self._until_there(missing)
            for name in missing:
                await self._making(name)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with its records; made anew, its incarnation is higher."""
        # Its number has to be known to be passed.
        await self._making(topic)
        await self._admin.delete(topic)
        await self._until_gone(topic)

    async def topics(self) -> dict[str, int]:
        return await self._admin.topics()

    async def topic_faults(self, topics: Mapping[str, int]) -> list[TopicFault]:
        """What is wrong with these, and with the twin's own topics, as a list of plain findings."""
        wanted = {**own_topics(self._prefix), **topics}
        found = await self._admin.found(wanted.keys())
        return [
            fault
            for name, number in sorted(wanted.items())
            for fault in faults(name, plan(self._prefix, name, number, self._limits), found[name])
        ]

    async def time_ms(self) -> int:
        (answer,) = await self.produce([Message(f"{self._prefix}.{CLOCK}", None, None, (), 0)])
        if isinstance(answer, BrokerError):
            raise answer
        return answer.time_ms

    async def _until_there(self, topics: Mapping[str, int]) -> None:
        """Wait until the brokers know these topics, and each partition answers."""
        for name, number in topics.items():
            async for _ in self._tries(f"{name} is being made, and does not answer yet"):
                with suppress(BrokerError):
                    await self._catalog.look([name])
                    await self._admin.bounds(name, range(number))
                    break

    async def _until_gone(self, topic: str) -> None:
        async for _ in self._tries(f"{topic} is being deleted, and still there"):
            await self._catalog.look([topic])
            if self._catalog.known(topic) is None:
                break

    async def _tries(self, why: str) -> AsyncIterator[None]:
        """Try again, until the brokers should have settled it; then `BrokerError`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SETTLE_MAX_S
        while loop.time() < until:
            yield
            await asyncio.sleep(SETTLE_S)
        raise BrokerError(why)
