"""Where does the simulation see what reached the store and the broker?

A tap stands in front of the real embedded twin, hands every call on, and tells a watcher what came of it.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from minutewheel.broker.errors import BrokerError
from minutewheel.broker.port import Produced
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message
from minutewheel.store.progress import Checkpoint, Progress
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.task import PlainRow


class Watcher(Protocol):
    """What is told of each call that landed."""

    def wrote(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None: ...
    def progressed(self, shard: int, fence: int, before: Progress, after: Progress) -> None: ...
    def stands(self, message: Message, produced: Produced) -> None: ...


class StoreTap:
    """The store, watched."""

    def __init__(self, store: SqliteStore, watcher: Watcher) -> None:
        self._store = store
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, shard: int, fence: int, member: str, marks_up_to: int) -> Progress:
        before = await self._store.progress(shard, -1)
        answer = await self._store.claim(shard, fence, member, marks_up_to)
        self._watcher.progressed(shard, fence, before, await self._store.progress(shard, -1))
        return answer

    async def record(self, shard: int, fence: int, checkpoint: Checkpoint) -> bool:
        before = await self._store.progress(shard, -1)
        answer = await self._store.record(shard, fence, checkpoint)
        self._watcher.progressed(shard, fence, before, await self._store.progress(shard, -1))
        return answer

    async def write(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
        await self._store.write(shard, timestamp, rows)
        self._watcher.wrote(shard, timestamp, rows)


class BrokerTap:
    """The broker, watched."""

    def __init__(self, broker: SqliteBroker, watcher: Watcher) -> None:
        self._broker = broker
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        answers = await self._broker.produce(messages)
        for message, answer in zip(messages, answers, strict=True):
            if isinstance(answer, Produced):
                self._watcher.stands(message, answer)
        return answers
