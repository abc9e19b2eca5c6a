"""How does a program without an event loop submit tasks, and learn what became of them?

The same names as `AsyncClient`, each call waiting for its answer. One loop in a thread of its own does the work, so
a client may be used from any threads, also at once.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from datetime import timedelta
from itertools import islice
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from msgspec.structs import replace

from ..broker.compose import Submission
from ..broker.form import DEFAULT_TENANT
from ..broker.receipt import Receipt
from ..store.port import Queue
from .async_client import ANSWER_WITHIN_MS, CHUNK_ITEMS, Accepted, AsyncClient, Refused
from .request import Time
from .view import TaskView

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own, to make things in and to call them from outside."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True, name="minutewheel-client")
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it there and wait for its answer. An interrupt here cancels it there."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the thread. Safe to call again."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class Client:
    """A client for plain programs. What `inner` stands on was made in `loop`, which the client closes with itself."""

    def __init__(self, inner: AsyncClient, loop: Loop) -> None:
        self._inner = inner
        self._loop = loop

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End its thread. Safe to call again."""
        self._loop.close()

    def submit(self, submission: Submission) -> Accepted:
        """Return when it is accepted. `InvalidTask` for what would be refused, `NotAccepted` if nobody knows."""
        return self._loop.call(self._inner.submit(submission))

    def submit_answered(self, submission: Submission, *, within_ms: int = ANSWER_WITHIN_MS) -> Receipt:
        """Submit it, and wait for what its owner made of it: accepted, a duplicate, a conflict of ids …"""
        return self._loop.call(self._inner.submit_answered(submission, within_ms=within_ms))

    def submit_many(self, submissions: Iterable[Submission]) -> Iterator[Accepted | Refused]:
        """Submit them in batch records. One answer each, in their order; none stops the others.

        No more of them are asked for until those before are acknowledged and their answers taken.
        """
        start = 0
        for chunk in _chunks(submissions):  # asked for in the caller's thread, where its iterator belongs
            for answer in self._loop.call(_all(self._inner.submit_many(chunk))):
                yield replace(answer, index=start + answer.index)
            start += len(chunk)

    def cancel(self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int = ANSWER_WITHIN_MS) -> Receipt:
        """Do not run it. The answer is true: cancelled (no later start), too late, or unknown."""
        return self._loop.call(self._inner.cancel(task_id, tenant=tenant, within_ms=within_ms))

    def reschedule(
        self,
        task_id: str,
        *,
        at: Time | None = None,
        delay: timedelta | None = None,
        tenant: str = DEFAULT_TENANT,
        within_ms: int = ANSWER_WITHIN_MS,
    ) -> Receipt:
        """Run it at another time: it fires at exactly one of the two, and the answer says at which."""
        return self._loop.call(self._inner.reschedule(task_id, at=at, delay=delay, tenant=tenant, within_ms=within_ms))

    def redrive(
        self,
        task_id: str,
        *,
        at: Time | None = None,
        delay: timedelta | None = None,
        tenant: str = DEFAULT_TENANT,
        within_ms: int = ANSWER_WITHIN_MS,
    ) -> Receipt:
        """File a dead task anew, at once if no time is given, with a fresh count of starts."""
        return self._loop.call(self._inner.redrive(task_id, at=at, delay=delay, tenant=tenant, within_ms=within_ms))

    def discard(self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int = ANSWER_WITHIN_MS) -> Receipt:
        """Put a dead letter away for good."""
        return self._loop.call(self._inner.discard(task_id, tenant=tenant, within_ms=within_ms))

    def get(self, task_id: str, *, tenant: str = DEFAULT_TENANT) -> TaskView | None:
        """The task as it is now; None if it is not known, or not applied yet."""
        return self._loop.call(self._inner.get(task_id, tenant=tenant))

    def wait(self, task_id: str, *, tenant: str = DEFAULT_TENANT, within_ms: int | None = None) -> TaskView:
        """Return when it is done, dead, cancelled or expired. `NoAnswer` if it is not by then."""
        return self._loop.call(self._inner.wait(task_id, tenant=tenant, within_ms=within_ms))

    def put_queue(self, queue: Queue) -> None:
        """Declare a queue, so that submissions may name it; its topic is made if it is not there."""
        self._loop.call(self._inner.put_queue(queue))

    def queues(self) -> list[Queue]:
        return self._loop.call(self._inner.queues())


async def _all(answers: AsyncIterator[T]) -> list[T]:
    return [answer async for answer in answers]


def _chunks(submissions: Iterable[Submission]) -> Iterator[list[Submission]]:
    iterator = iter(submissions)
    while chunk := list(islice(iterator, CHUNK_ITEMS)):
        yield chunk
