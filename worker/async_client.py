"""How does a program submit tasks, change its mind about them, and learn what became of them?

A command is *accepted* when the broker has it. What its owner made of it (cancelled, or too late) is known when its
receipt is there: a receipt bears the mark of its command, and stands in the receipts' partition of the task's shard
somewhere behind the end that partition had before the command was sent.
"""

import asyncio
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import suppress
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from ..broker.command import Code, InvalidTask
from ..broker.compose import Composer, Item, Submission
from ..broker.errors import BrokerError
from ..broker.form import DEFAULT_TENANT
from ..broker.limits import Limits
from ..broker.port import Broker, Produced
from ..broker.receipt import Receipt, decode_receipt
from ..broker.wire import Message, Topics
from ..store.port import Catalog, Ledger, Queue, Store
from ..store.task import SHARDS
from .clock import Clock, SystemClock
from .errors import NoAnswer, NotAccepted
from .request import Time, due_of
from .view import TaskView, look

CHUNK_ITEMS = 1_000
CHUNK_BYTES = 400_000
"""Below a batch record's limit, so that the items of a shard fit into one record whatever their shards are."""
FETCH_LIMIT = 1_000
FETCH_WAIT_MS = 500
LOOK_FIRST_MS = 20
LOOK_CAP_MS = 1_000
ANSWER_WITHIN_MS = 10_000


class Accepted(Struct, frozen=True):
    """The broker has it. `index` is its place, from 0, among those given; `item` its place in its record."""

    key: str
    partition: int
    offset: int
    time_ms: int
    item: int = 0
    index: int = 0


class Refused(Struct, frozen=True):
    """One of many that was not sent (`InvalidTask`), or not acknowledged (`NotAccepted`)."""

    index: int
    error: InvalidTask | NotAccepted


class AsyncClient:
    """A client for programs with an event loop. `Client` has the same methods for all others."""

    def __init__(
        self,
        broker: Broker,
        store: Store,
        catalog: Catalog,
        ledger: Ledger,
        *,
        topics: Topics | None = None,
        limits: Limits | None = None,
        clock: Clock | None = None,
        undeclared: bool = False,
    ) -> None:
        """With `undeclared`, queues that nobody declared may be named: where dispatchers declare what they meet."""
        self._broker = broker
        self._store = store
        self._catalog = catalog
        self._ledger = ledger
        self._topics = topics or Topics()
        self._compose = Composer(self._topics, limits)
        self._clock = clock or SystemClock()
        self._undeclared = undeclared
        self._declared: frozenset[str] = frozenset()

    async def submit(self, submission: Submission) -> Accepted:
        """Return when it is accepted. `InvalidTask` for what would be refused, `NotAccepted` if nobody knows."""
        await self._check_queue(submission.queue)
        return await self._accept(self._compose.submit(submission))

    async def submit_answered(self, submission: Submission, *, within_ms: int = ANSWER_WITHIN_MS) -> Receipt:
        """Submit it, and wait for what its owner made of it: accepted, a duplicate, a conflict of ids …"""
        await self._check_queue(submission.queue)
        mark = submission.receipt or uuid.uuid4().hex
        return await self._ask(mark, self._compose.submit(replace(submission, receipt=mark)), within_ms)

    async def submit_many(
        self, submissions: Iterable[Submission] | AsyncIterable[Submission]
    ) -> AsyncIterator[Accepted | Refused]:
        """Submit them in batch records. One answer each, in their order; none stops the others.

        No more of them are asked for until those before are acknowledged and their answers taken.
        """
        chunk = _Chunk(0)
        async for submission in _each(submissions):
            try:
                await self._check_queue(submission.queue)
                chunk.add(self._compose.item(submission))
            except InvalidTask as error:
                chunk.add(error)
            if chunk.full:
                for answer in await self._send(chunk):
                    yield answer
                chunk = _Chunk(chunk.end)
        for answer in await self._send(chunk):
            yield answer

    async def cancel(self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int = ANSWER_WITHIN_MS) -> Receipt:
        """Do not run it. The answer is true: cancelled (no later start), too late, or unknown."""
        mark = uuid.uuid4().hex
        return await self._ask(mark, self._compose.cancel(tenant, task_id, receipt=mark), within_ms)

    async def reschedule(
        self,
        task_id: str,
        *,
        at: Time | None = None,
        delay: timedelta | None = None,
        tenant: str = DEFAULT_TENANT,
        within_ms: int = ANSWER_WITHIN_MS,
    ) -> Receipt:
        """Run it at another time: it fires at exactly one of the two, and the answer says at which."""
        mark, (due, delay_ms) = uuid.uuid4().hex, due_of(at, delay)
        message = self._compose.reschedule(tenant, task_id, due=due, delay_ms=delay_ms, receipt=mark)
        return await self._ask(mark, message, within_ms)

    async def redrive(
        self,
        task_id: str,
        *,
        at: Time | None = None,
        delay: timedelta | None = None,
        tenant: str = DEFAULT_TENANT,
        within_ms: int = ANSWER_WITHIN_MS,
    ) -> Receipt:
        """File a dead task anew, at once if no time is given, with a fresh count of starts."""
        mark, (due, delay_ms) = uuid.uuid4().hex, due_of(at, delay)
        message = self._compose.redrive(tenant, task_id, due=due, delay_ms=delay_ms, receipt=mark)
        return await self._ask(mark, message, within_ms)

    async def discard(
        self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int = ANSWER_WITHIN_MS
    ) -> Receipt:
        """Put a dead letter away for good."""
        mark = uuid.uuid4().hex
        return await self._ask(mark, self._compose.discard(tenant, task_id, receipt=mark), within_ms)

    async def get(self, task_id: str, *, tenant: str = DEFAULT_TENANT) -> TaskView | None:
        """The task as it is now; None if it is not known, or not applied yet."""
        return await look(self._store, self._ledger, f"{tenant}/{task_id}", self._clock.now_ms())

    async def wait(self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int | None = None) -> TaskView:
        """Return when it is done, dead, cancelled or expired. `NoAnswer` if it is not by then."""
        pause_ms = LOOK_FIRST_MS
        with suppress(TimeoutError):
            async with asyncio.timeout(None if within_ms is None else within_ms / 1_000):
                while True:
                    view = await self.get(task_id, tenant=tenant)
                    if view is not None and view.final:
                        return view
                    await self._clock.sleep_ms(pause_ms)
                    pause_ms = min(LOOK_CAP_MS, pause_ms * 2)
        raise NoAnswer(f"{tenant}/{task_id} has not come to its end within {within_ms} ms")

    async def put_queue(self, queue: Queue) -> None:
        """Declare a queue, so that submissions may name it; its topic is made if it is not there."""
        await self._broker.create_topics({self._topics.due(queue.name): SHARDS})
        await self._catalog.put_queue(queue)

    async def queues(self) -> list[Queue]:
        return await self._catalog.queues()

    async def _check_queue(self, queue: str) -> None:
        if self._undeclared or queue in self._declared:
            return
        self._declared = frozenset(declared.name for declared in await self._catalog.queues())
        if queue not in self._declared:
            raise InvalidTask(Code.UNKNOWN_QUEUE, f"nobody has declared a queue {queue!r}", "queue")

    async def _accept(self, message: Message) -> Accepted:
        (answer,) = await self._produce([message])
        if isinstance(answer, BrokerError):
            raise NotAccepted(str(answer)) from answer
        return _accepted(answer, (message.key or b"").decode())

    async def _produce(self, messages: list[Message]) -> list[Produced | BrokerError]:
        try:
            return await self._broker.produce(messages)
        except BrokerError as error:
            return [error] * len(messages)

    async def _send(self, chunk: "_Chunk") -> list[Accepted | Refused]:
        """One record a shard, and the answers of all items in their order."""
        groups = chunk.by_shard()
        messages = [message for group in groups for message in self._compose.batches(item for _, item in group)]
        assert len(messages) == len(groups), "each group fits into one record"
        for group, produced in zip(groups, await self._produce(messages), strict=True):
            for place, (index, item) in enumerate(group):
                chunk.answers[index] = (
                    Refused(index, NotAccepted(str(produced)))
                    if isinstance(produced, BrokerError)
                    else _accepted(produced, item.key, place, index)
                )
        return [chunk.answers[index] for index in sorted(chunk.answers)]

    async def _ask(self, mark: str, message: Message, within_ms: int) -> Receipt:
        """Send a command, and wait for the receipt that bears its mark."""
        assert message.partition is not None
        (bounds,) = await self._broker.bounds(self._topics.receipts, [message.partition])
        await self._accept(message)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_ms / 1_000):
                return await self._find_receipt(message.partition, bounds.end, mark)
        raise NoAnswer(f"accepted, but not answered within {within_ms} ms: get() tells what came of it")

    async def _find_receipt(self, shard: int, offset: int, mark: str) -> Receipt:
        while True:
            fetched = await self._broker.fetch(self._topics.receipts, shard, offset, FETCH_LIMIT, FETCH_WAIT_MS)
            for record in fetched.records:
                with suppress(InvalidTask):  # not ours, so not the one we wait for
                    receipt = decode_receipt(record)
                    if receipt.receipt == mark and receipt.op != "outcome":
                        return receipt
            offset = fetched.next_offset


class _Chunk:
    """Some of many submissions, and what is known of each."""

    def __init__(self, start: int) -> None:
        self.end = start
        self.answers: dict[int, Accepted | Refused] = {}
        self._items: list[tuple[int, Item]] = []
        self._bytes = 0

    def add(self, item: Item | InvalidTask) -> None:
        if isinstance(item, InvalidTask):
            self.answers[self.end] = Refused(self.end, item)
        else:
            self._items.append((self.end, item))
            self._bytes += len(item.value)
        self.end += 1

    @property
    def full(self) -> bool:
        return len(self._items) + len(self.answers) >= CHUNK_ITEMS or self._bytes >= CHUNK_BYTES

    def by_shard(self) -> list[list[tuple[int, Item]]]:
        groups: dict[int, list[tuple[int, Item]]] = {}
        for index, item in self._items:
            groups.setdefault(item.shard, []).append((index, item))
        return list(groups.values())


def _accepted(produced: Produced, key: str, item: int = 0, index: int = 0) -> Accepted:
    return Accepted(key, produced.partition, produced.offset, produced.time_ms, item, index)


async def _each(submissions: Iterable[Submission] | AsyncIterable[Submission]) -> AsyncIterator[Submission]:
    if isinstance(submissions, AsyncIterable):
        async for submission in submissions:
            yield submission
    else:
        for submission in submissions:
            yield submission
