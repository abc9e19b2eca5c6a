"""How do many fetches, from many partitions at once, share one of Kafka's consumers?

Each place (topic and partition) that is read has a stream: a `Run` of the records that have come, and the fetches that
wait at it. A fetch from within the run is answered from memory; one from elsewhere makes the consumer follow the place
from there. What comes ahead of the readers is bounded: beyond it the place is paused. A stream that nobody asks for
is dropped after a while.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer

from .errors import BrokerError
from .kafka_client import Connection, made
from .kafka_puller import Feed, Flow, Order, Place, Puller
from .kafka_run import Run
from .wire import Record

AHEAD_RECORDS = 4_096
AHEAD_BYTES = 1024 * 1024
SWEEP_S = 1.0

Read = tuple[Sequence[Record], int, int]
"""Records, where to read on, the end of the partition."""


class Waiting:
    """A fetch that has no answer yet."""

    def __init__(self, offset: int, limit: int, *, patient: bool) -> None:
        self.offset = offset
        self.limit = limit
        self.patient = patient
        """Whether it waits on at the end of the partition."""
        self.answer: asyncio.Future[Read] = asyncio.get_running_loop().create_future()


class Stream:
    """One place as it is followed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.run = Run(0)
        self.turn = 0
        self.paused = False
        self.used_at = 0.0
        self.waiting: list[Waiting] = []


class Reader:
    """Reads places from any offset. For one event loop; `close` ends it.

    `fetch_wait_ms` is how long a broker may hold an answer for want of records: short for a look, longer to follow;
    `idle_s` how long a stream outlives its last use.
    """

    def __init__(self, connection: Connection, *, group: str, fetch_wait_ms: int, poll_ms: int, idle_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._answer_s = connection.answer_ms / 1_000
        self._idle_s = idle_s
        self._streams: dict[Place, Stream] = {}
        self._turns = 0
        self._fed: deque[list[Feed]] = deque()
        self._woken = False
        self._sweep_later: asyncio.TimerHandle | None = None
        options = connection.options(
            group_id=group,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            isolation_level="read_committed",
            fetch_wait_max_ms=fetch_wait_ms,
            fetch_error_backoff_ms=100,
            fetch_queue_backoff_ms=10,
            queued_min_messages=2_000,
            queued_max_messages_kbytes=32 * 1_024,
        )
        self._puller = Puller(made(Consumer, options), self._feed, poll_ms=poll_ms, name=f"minutewheel-{group}")

    async def read(self, place: Place, offset: int, limit: int, wait_ms: int) -> Read:
        """As the port's `fetch`. With no wait, all that was acknowledged before the call counts as there."""
        stream = self._streams.get(place)
        if stream is None:
            stream = self._streams[place] = Stream(place)
            self._follow(stream, offset)
        elif not stream.run.covers(offset):
            self._follow(stream, offset)
        elif (taken := self._take(stream, offset, limit)) is not None:
            return taken
        elif wait_ms <= 0:
            self._follow(stream, offset)
        waiting = Waiting(offset, limit, patient=wait_ms > 0)
        stream.waiting.append(waiting)
        try:
            return await self._wait(stream, waiting, wait_ms / 1_000)
        finally:
            stream.waiting.remove(waiting)
            stream.used_at = self._loop.time()

    def places(self) -> set[Place]:
        return set(self._streams)

    def forget(self, topic: str, error: BrokerError) -> None:
        """Drop the streams of a topic; who waits at them gets the error."""
        for stream in [one for one in self._streams.values() if one.place[0] == topic]:
            self._drop(stream)
            for waiting in stream.waiting:
                _fail(waiting, error)

    async def close(self) -> None:
        if self._sweep_later is not None:
            self._sweep_later.cancel()
        await asyncio.to_thread(self._puller.close)

    # ---- waiting

    async def _wait(self, stream: Stream, waiting: Waiting, wait_s: float) -> Read:
        """The answer; after the wait, that there is nothing, if anything has been heard of the partition at all."""
        done, _ = await asyncio.wait((waiting.answer,), timeout=wait_s if wait_s > 0 else self._answer_s)
        if not done and not stream.run.heard:
            waiting.patient = False
            done, _ = await asyncio.wait((waiting.answer,), timeout=max(0.0, self._answer_s - wait_s))
        if done:
            return waiting.answer.result()
        if not waiting.patient:
            raise BrokerError(f"no answer from {stream.place} within {self._answer_s} s")
        return (), waiting.offset, max(waiting.offset, stream.run.end_offset)

    def _take(self, stream: Stream, offset: int, limit: int) -> Read | None:
        run = stream.run
        run.let_go(offset)
        taken = run.take(offset, limit)
        stream.used_at = self._loop.time()
        if stream.paused and not _full(run, 2):
            stream.paused = False
            self._puller.order(Flow(stream.place, paused=False))
        return None if taken is None else (*taken, run.end_offset)

    # ---- following

    def _follow(self, stream: Stream, offset: int) -> None:
        self._turns += 1
        stream.turn, stream.run, stream.paused = self._turns, Run(offset), False
        stream.used_at = self._loop.time()
        self._puller.order(Order(stream.place, offset, stream.turn))
        if self._sweep_later is None:
            self._sweep_later = self._loop.call_later(SWEEP_S, self._sweep)

    def _drop(self, stream: Stream) -> None:
        if self._streams.get(stream.place) is stream:
            del self._streams[stream.place]
            self._puller.order(Order(stream.place, None, 0))

    def _sweep(self) -> None:
        """Drop the streams that nobody has used for a while."""
        now = self._loop.time()
        for stream in list(self._streams.values()):
            if not stream.waiting and now - stream.used_at > self._idle_s:
                self._drop(stream)
        self._sweep_later = self._loop.call_later(SWEEP_S, self._sweep) if self._streams else None

    # ---- what comes

    def _feed(self, feeds: list[Feed]) -> None:
        """Called in the consumer's thread."""
        self._fed.append(feeds)
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop has ended, and nobody waits any more
                return

    def _deliver(self) -> None:
        self._woken = False
        while self._fed:
            for feed in self._fed.popleft():
                stream = self._streams.get(feed.place)
                if stream is not None and stream.turn == feed.turn:
                    self._accept(stream, feed)

    def _accept(self, stream: Stream, feed: Feed) -> None:
        run = stream.run
        if feed.records:
            run.add(feed.records, feed.next_offset, feed.end_offset, feed.size)
        if feed.at_end:
            run.reach_end(feed.next_offset)
        self._serve(stream)
        if feed.error is not None:
            self._stop(stream, feed.error)
        elif not stream.paused and _full(run, 1):
            stream.paused = True
            self._puller.order(Flow(stream.place, paused=True))

    def _serve(self, stream: Stream) -> None:
        """Answer those for whom there is something now."""
        run = stream.run
        for waiting in stream.waiting:
            if waiting.answer.done() or not run.covers(waiting.offset):
                continue
            taken = run.take(waiting.offset, waiting.limit)
            if taken is not None:
                waiting.answer.set_result((*taken, run.end_offset))
            elif run.at_end and not waiting.patient:
                waiting.answer.set_result(((), waiting.offset, run.end_offset))
        left = [waiting.offset for waiting in stream.waiting if not waiting.answer.done()]
        if left and run.heard and not run.covers(min(left)):
            # It is not read through up to there: what nobody takes would fill the memory and end the flow.
            self._follow(stream, min(left))
        elif stream.waiting:
            run.let_go(min(waiting.offset for waiting in stream.waiting))

    def _stop(self, stream: Stream, error: BrokerError) -> None:
        """The place can't be read on from where the run ends: those who wait there are told, others wait elsewhere."""
        waiting = [one for one in stream.waiting if not one.answer.done()]
        elsewhere = [one.offset for one in waiting if one.offset != stream.run.next_offset]
        for one in waiting:
            if one.offset == stream.run.next_offset:
                _fail(one, error)
        if elsewhere:
            self._follow(stream, min(elsewhere))
        else:
            self._drop(stream)


def _full(run: Run, part: int) -> bool:
    """Is more in memory than a part of what may be?"""
    return len(run) * part > AHEAD_RECORDS or run.size * part > AHEAD_BYTES


def _fail(waiting: Any, error: BrokerError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
