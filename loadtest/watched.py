"""How late was each due task acknowledged?

A broker that hands everything on to another, and writes down what it sees of the due topics on the way. It looks at
one header of each message, so it costs little beside what it watches.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence

from ..broker.due import DUE_INFIX
from ..broker.errors import BrokerError
from ..broker.port import Bounds, Broker, Fetched, GroupMember, Produced
from ..broker.wire import Message, Topics


class WatchedBroker:
    """The same broker, watched. `late_ms` has one number for each acknowledged record of a due topic, if `each` is to
    be looked at; `last_ms` says when the last were acknowledged."""

    def __init__(self, broker: Broker, topics: Topics, now_ms: Callable[[], int], *, each: bool = True) -> None:
        self.late_ms = array("q")
        self.last_ms = 0
        self._broker = broker
        self._prefix = f"{topics.prefix}{DUE_INFIX}"
        self._now_ms = now_ms
        self._each = each

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        answers = await self._broker.produce(messages)
        if messages and messages[0].topic.startswith(self._prefix):
            now_ms = self.last_ms = self._now_ms()
            if self._each:
                self.late_ms.extend(
                    now_ms - due_ms_of(message)
                    for message, answer in zip(messages, answers, strict=True)
                    if isinstance(answer, Produced)
                )
        return answers

    def purge(self) -> None:
        self._broker.purge()

    async def fetch(self, topic: str, partition: int, offset: int, limit: int, wait_ms: int) -> Fetched:
        return await self._broker.fetch(topic, partition, offset, limit, wait_ms)

    async def bounds(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        return await self._broker.bounds(topic, partitions)

    async def join(self, group: str, topics: Sequence[str], member: str) -> GroupMember:
        return await self._broker.join(group, topics, member)

    async def create_topics(self, topics: Mapping[str, int]) -> None:
        await self._broker.create_topics(topics)

    async def topics(self) -> dict[str, int]:
        return await self._broker.topics()

    async def time_ms(self) -> int:
        return await self._broker.time_ms()


def due_ms_of(message: Message) -> int:
    """When the task of a due record was due."""
    return next(int(value or b"0") for name, value in message.headers if name == "mw_due_ms")
