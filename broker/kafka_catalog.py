"""Which topics are there, and which making of its name is each?

`Catalog` answers from what it has seen, or looks anew; all who want to look while a look is under way share the next
one, so what each is told is not older than its question.

Kafka gives each making of a topic an id of its own, and the positions of ours want a small number that rises. So every
id is written once into the log `<prefix>.meta` by whoever first meets it, and its number is its rank among the ids of
that name in the log: all readers count the same, a repeat counts once, and nothing has to be compared and swapped.
The topic is never to be trimmed or made anew (docs/kafka.md).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from .errors import BrokerError, OffsetGone
from .kafka_admin import Described
from .port import Produced
from .wire import JSON, Message, Record

LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}")
CHUNK = 1_000

Describe = Callable[[Collection[str]], Awaitable[Mapping[str, Described | None]]]


class Catalog:
    """The topics, as last seen."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._known: dict[str, Described] = {}
        self._wanted: set[str] = set()
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    def known(self, name: str) -> Described | None:
        return self._known.get(name)

    def doubt(self, name: str) -> None:
        """Something speaks against what is known of it: the next who asks looks anew."""
        self._known.pop(name, None)

    async def find(self, names: Collection[str]) -> None:
        """Look for those that are not known."""
        if unknown := [name for name in names if name not in self._known]:
            await self.look(unknown)

    async def look(self, names: Collection[str]) -> None:
        """Look at these anew. One whose name Kafka does not allow is not there."""
        self._wanted.update(name for name in names if LEGAL.fullmatch(name))
        if self._next is None:
            self._next = asyncio.create_task(self._look())
            self._next.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._next)

    async def _look(self) -> None:
        async with self._turn:
            names, self._wanted, self._next = self._wanted, set(), None
            found = await self._describe(names) if names else {}
            for name, topic in found.items():
                if topic is None:
                    self._known.pop(name, None)
                else:
                    self._known[name] = topic


class Making(msgspec.Struct, frozen=True):
    """One making of a topic, as it stands in the log of them."""

    topic: str
    id: str


Read = Callable[[str, int, int, int, int], Awaitable[tuple[Sequence[Record], int, int]]]
"""(topic, partition, offset, limit, wait_ms) → records, next offset, end offset."""


class Publish(Protocol):
    """Publish messages, as the port's `produce` does."""

    async def __call__(self, messages: Sequence[Message]) -> Sequence[Produced | BrokerError]: ...


class Incarnations:
    """The numbers of the makings of topics: 1, 2, …"""

    def __init__(self, meta: str, read: Read, publish: Publish) -> None:
        self._meta = meta
        self._read = read
        self._publish = publish
        self._ids: dict[str, list[str]] = {}
        self._next_offset = 0
        self._turn = asyncio.Lock()

    async def number(self, topic: str, topic_id: str) -> int:
        """Which making of its name the topic with this id is. It is written down if nobody has yet."""
        if number := self._number(topic, topic_id):
            return number
        async with self._turn:
            await self._read_on()
            if not self._number(topic, topic_id):
                await self._write(Making(topic, topic_id))
                await self._read_on()
        number = self._number(topic, topic_id)
        if not number:
            raise BrokerError(f"{self._meta} does not keep what is written to it")
        return number

    def _number(self, topic: str, topic_id: str) -> int:
        with suppress(KeyError, ValueError):
            return self._ids[topic].index(topic_id) + 1
        return 0

    async def _write(self, making: Making) -> None:
        value = msgspec.json.encode(making)
        message = Message(self._meta, making.topic.encode(), value, (("content-type", JSON.encode()),), 0)
        (answer,) = await self._publish([message])
        if isinstance(answer, BrokerError):
            raise answer

    async def _read_on(self) -> None:
        while True:
            try:
                records, next_offset, end_offset = await self._read(self._meta, 0, self._next_offset, CHUNK, 0)
            except OffsetGone as error:
                # Not for the caller's offset, who would take it for the log's own alarm.
                raise BrokerError(f"{self._meta} was trimmed or made anew (docs/kafka.md): {error}") from error
            for record in records:
                self._note(record.value)
            self._next_offset = next_offset
            if next_offset >= end_offset:
                return

    def _note(self, value: bytes | None) -> None:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            making = msgspec.json.decode(value or b"", type=Making)
            ids = self._ids.setdefault(making.topic, [])
            if making.id not in ids:
                ids.append(making.id)
