"""How does one file serve as the broker of an installation without one?

`broker.sqlite` holds partitioned logs with dense offsets and the broker's time, and the groups that read them; many
processes use it at once, and what was acknowledged survives a kill of any of them. It promises what Kafka promises
and no more: at least once, with order within a partition.

The broker owns no thread and no task. All SQL runs in `call`, which is given to it: in one thread of its own, or at
once, in memory, for the simulation. A fetch or poll with a wait of 0 never waits; a longer wait is spent in `Watch`.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, TypeVarTuple

from ..store.errors import StoreError, UnknownOutcome
from ..store.record import encode_headers
from ..store.sqlite_connection import Call, Synchronous
from .errors import BrokerError, Unpublishable
from .port import Bounds, Fetched, Produced
from .sqlite_file import LogFile
from .sqlite_group import Membership, SqliteMember
from .sqlite_log import Draft, Logs, Parcel
from .sqlite_watch import Watch
from .wire import Message

T = TypeVar("T")
Args = TypeVarTuple("Args")

# How long a writer waits for its turn among the processes before it gives up.
PATIENCE_S = 5.0
# How long SQLite itself waits in it: it sleeps longer and longer, so we ask again often instead.
BUSY_MS = 3


def patient(fn: Callable[[*Args], T], *args: *Args) -> T:
    """Do it when no other process is writing; no error of the store's leaves the broker."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fn(*args)
        except StoreError as error:
            if not _busy(error) or time.monotonic() > until:
                raise BrokerError(str(error)) from error


def _busy(error: StoreError) -> bool:
    code = getattr(error.__cause__, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF == sqlite3.SQLITE_BUSY and not isinstance(error, UnknownOutcome)


class SqliteBroker:
    """The embedded broker: a `Broker` over one file, for one event loop."""

    def __init__(
        self, file: LogFile, call: Call, clock_ms: Callable[[], int], *, max_message_bytes: int, session_ms: int
    ) -> None:
        self._file = file
        self._logs = Logs(file)
        self._call = call
        self._clock_ms = clock_ms
        self._max_message_bytes = max_message_bytes
        self._session_ms = session_ms
        self._watch = Watch(file.glance, self._look, file.moved)

    @classmethod
    async def open(
        cls,
        path: str,
        call: Call,
        clock_ms: Callable[[], int],
        *,
        synchronous: Synchronous = "FULL",
        max_message_bytes: int = 1_000_000,
        session_ms: int = 10_000,
    ) -> "SqliteBroker":
        """Open a file, or ":memory:". `synchronous` FULL survives the power going, NORMAL only a kill.

        A group member that is silent for `session_ms` loses its partitions. `BrokerError` if the file can't be used.
        """
        file = await call(patient, LogFile.open, path, clock_ms, synchronous, BUSY_MS)
        return cls(file, call, clock_ms, max_message_bytes=max_message_bytes, session_ms=session_ms)

    async def close(self) -> None:
        await self._run(self._file.close)

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        drafts = [self._draft(message) for message in messages]
        parcel = Parcel(drafts)
        refused = [draft for draft in drafts if isinstance(draft, Unpublishable)]
        if len(refused) == len(drafts):
            return list(refused)
        self._logs.parcels.append(parcel)
        try:
            await self._run(self._logs.flush, parcel)
        except BrokerError as error:
            parcel.refuse(str(error))
        finally:
            # A cancelled call is not written behind its caller's back by the next one, if it was not yet.
            parcel.withdrawn = True
            self._watch.wake()
        assert parcel.answers is not None
        return parcel.answers

    def purge(self) -> None:
        """Nothing is queued: what `produce` has been given is being written, all in one transaction."""

    async def fetch(self, topic: str, partition: int, offset: int, limit: int, wait_ms: int) -> Fetched:
        if wait_ms <= 0:
            return await self._run(self._file.view, self._logs.read, topic, partition, offset, limit)
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1000
        while True:
            log = self._file.known(topic, partition)
            # At its known end an idle partition costs no query: whoever looks at the file will say when it moves.
            if log is None or log.end != offset:
                fetched = await self._run(self._file.view, self._logs.read, topic, partition, offset, limit)
                if fetched.records or limit == 0:
                    return fetched
            elif (left := until - loop.time()) > 0:
                await self._watch.wait_moved((log.id,), left)
            else:
                return Fetched((), offset, offset, log.incarnation)

    async def bounds(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        return await self._run(self._file.view, self._logs.bounds, topic, list(partitions))

    async def join(self, group: str, topics: Sequence[str], member: str) -> SqliteMember:
        membership = Membership(group, member, tuple(topics), self._session_ms)
        joined = SqliteMember(self._file, self._logs, self._run, self._watch, membership)
        await joined.enter()
        return joined

    async def create_topics(self, topics: Mapping[str, int]) -> None:
        await self._run(self._file.change, self._logs.create, dict(topics))
        self._watch.wake()

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with its records and what groups committed of it; made anew, its incarnation is higher."""
        await self._run(self._file.change, self._logs.delete, topic)
        self._watch.wake()

    async def topics(self) -> dict[str, int]:
        return await self._run(self._file.view, self._logs.partitions)

    async def time_ms(self) -> int:
        return self._clock_ms()

    async def trim(self, topic: str, before_ms: int) -> int:
        """Delete the records that are older, from each partition's start on; the answer is how many there were."""
        deleted = 0
        for partition in range((await self.topics()).get(topic, 0)):
            while n := await self._run(self._file.change, self._logs.trim, topic, partition, before_ms):
                deleted += n
        return deleted

    def _draft(self, message: Message) -> Draft | Unpublishable:
        headers = encode_headers(message.headers) if message.headers else None
        size = len(message.key or b"") + len(message.value or b"") + len(headers or b"")
        if size > self._max_message_bytes:
            return Unpublishable("too_large", f"{size} bytes of at most {self._max_message_bytes}")
        return message, headers

    async def _look(self) -> None:
        await self._run(self._file.look)

    async def _run(self, fn: Callable[[*Args], T], *args: *Args) -> T:
        return await self._call(patient, fn, *args)
