"""How does a worker process take tasks from its queues, and how does it stop?

A worker is a member of the consumer group of its application. It polls no more than it has room for, and goes on
polling while handlers run, for that is how the broker knows that it lives. Beside the polling: the deliveries, each
in a task of its own (`deliveries`), the renewals of what is held (`claims`), the way out (`settling`), and the
commits (`commits`). On `stop` it takes nothing more, gives back what has not started, lets what runs come to its end
for a while, settles, commits and leaves.
"""

import asyncio
import logging
import signal
import uuid
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ..broker.command import Code, Rejection, Standing
from ..broker.due import NotDue, parse_due
from ..broker.errors import BrokerError
from ..broker.port import Broker, GroupMember
from ..broker.rejection import rejection_message
from ..broker.wire import Record, Topics
from ..store.port import ClaimAnswer, Ledger
from ..store.position import Log
from .again import pause_ms, until_done
from .app import App
from .claims import Claims
from .clock import Clock, SystemClock
from .commits import Commits, Partition
from .deliveries import Deliveries, Delivery
from .limits import WorkerLimits
from .settling import Settling

_log = logging.getLogger("minutewheel.worker")


class Statistics(Struct, frozen=True):
    """What a worker has done since it was made, and has in hand.

    `polls` rises as long as the worker lives, whether there is work or not. `started` counts starts of handlers;
    `finished_before` are deliveries that were skipped since their filing had run; `rejected` could not be decoded.
    """

    polls: int
    started: int
    done: int
    failed: int
    snoozed: int
    expired: int
    finished_before: int
    rejected: int
    in_hand: int
    parked: int
    uncommitted: int


class Worker:
    """Runs an application's handlers on the tasks of its queues."""

    def __init__(
        self,
        app: App,
        broker: Broker,
        ledger: Ledger,
        *,
        topics: Topics | None = None,
        limits: WorkerLimits | None = None,
        clock: Clock | None = None,
        group: str | None = None,
    ) -> None:
        self._app = app
        self._broker = broker
        self._topics = topics or Topics()
        self._limits = limits or WorkerLimits()
        self._clock = clock or SystemClock()
        self._group = group or f"{self._topics.prefix}.{app.name}"
        self._holder = uuid.uuid4().hex
        self._stopping = asyncio.Event()
        self._commits = Commits()
        self._polls = 0
        self._assigned: frozenset[Partition] = frozenset()
        self._claims = Claims(ledger, self._clock, self._holder, self._limits.hold_ms)
        self._settling = Settling(broker, ledger, self._topics, self._clock)
        self._deliveries = Deliveries(
            app,
            ledger,
            self._claims,
            self._settling,
            clock=self._clock,
            limits=self._limits,
            holder=self._holder,
            still_ours=lambda partition: partition in self._assigned,
        )

    def stop(self) -> None:
        """Begin to stop: `run` returns when that is done."""
        self._stopping.set()
        self._deliveries.freed.set()

    def statistics(self) -> Statistics:
        counts = self._deliveries.counts
        return Statistics(
            polls=self._polls,
            in_hand=self._deliveries.in_hand,
            parked=self._deliveries.parked,
            uncommitted=len(self._commits),
            **{
                name: counts[name]
                for name in ("started", "done", "failed", "snoozed", "expired", "finished_before", "rejected")
            },
        )

    async def run(self) -> None:
        """Work until `stop`. The topics of the queues must be there."""
        topics = [self._topics.due(queue) for queue in self._app.queues]
        member = await until_done(self._clock, lambda: self._broker.join(self._group, topics, self._holder))
        try:
            async with asyncio.TaskGroup() as beside:
                helpers = [
                    beside.create_task(self._settling.run()),
                    beside.create_task(self._renew_often()),
                    beside.create_task(self._commit_often(member)),
                ]
                await self._work(member)
                for helper in helpers:
                    helper.cancel()
            await self._commit(member)
        finally:
            await _leave(member)

    async def run_until_signal(self) -> None:
        """Work until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        try:
            await self.run()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def _work(self, member: GroupMember) -> None:
        """Take and see through, until stopped and nothing is in hand."""
        async with asyncio.TaskGroup() as group:
            works = Works(group)
            await self._poll_until_stopped(member, works)
            self._deliveries.stop_waiting()
            beating = group.create_task(self._beat_often(member))
            try:
                await works.wait(self._limits.grace_ms)
                self._deliveries.stop_running()
                await works.wait(self._limits.flush_ms)
            finally:
                beating.cancel()
                works.cancel()

    async def _poll_until_stopped(self, member: GroupMember, works: "Works") -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                records = await self._poll(member)
            except BrokerError as error:
                failures += 1
                _log.warning("polling failed: %s", error)
                await self._clock.sleep_ms(pause_ms(failures))
                continue
            failures = 0
            self._take(records, works)

    async def _poll(self, member: GroupMember) -> list[Record]:
        """As many records as there is room for; without room, wait for some, and show the broker that we live."""
        wait_ms = self._limits.poll_ms
        if not self._room():
            self._deliveries.freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1_000):
                    await self._deliveries.freed.wait()
            wait_ms = 0
        records = await member.poll(self._room(), wait_ms)
        self._polls += 1
        self._assigned = member.assigned()
        self._commits.keep(self._assigned)
        return records

    def _room(self) -> int:
        limits, deliveries = self._limits, self._deliveries
        if self._stopping.is_set() or deliveries.parked >= limits.parked or len(self._commits) >= limits.uncommitted:
            return 0
        return max(0, limits.concurrency - deliveries.in_hand)

    def _take(self, records: Sequence[Record], works: "Works") -> None:
        """Begin the work on these."""
        deliveries: list[Delivery] = []
        for record in records:
            self._commits.taken((record.topic, record.partition), record.offset)
            try:
                deliveries.append(Delivery(parse_due(record)))
            except NotDue as error:
                works.begin(self._refuse(record, error))
        groups, repeats = self._deliveries.take(deliveries)
        for group in groups:
            works.begin(self._see_group_through(group, works))
        for delivery in repeats:
            works.begin(self._see_repeat_through(delivery))

    async def _see_group_through(self, group: Sequence[Delivery], works: "Works") -> None:
        """One claim for the group; then each delivery goes its own way."""
        for delivery, answer in zip(group, await self._deliveries.claim(group), strict=True):
            works.begin(self._see_through(delivery, answer))

    async def _see_through(self, delivery: Delivery, answer: ClaimAnswer) -> None:
        self._commit_later(delivery, settled=await self._deliveries.see_through(delivery, answer))

    async def _see_repeat_through(self, delivery: Delivery) -> None:
        self._commit_later(delivery, settled=await self._deliveries.repeat(delivery))

    async def _refuse(self, record: Record, error: NotDue) -> None:
        """What can't be decoded goes to `rejected` as it came, and holds nothing up."""
        standing = Standing(Log.OUTCOMES, -1, record.time_ms)
        rejection = Rejection(standing, Code.NOT_DECODABLE, str(error))
        message = rejection_message(self._topics, record, rejection)

        async def produce() -> None:
            (answer,) = await self._broker.produce([message])
            if isinstance(answer, BrokerError):
                raise answer

        await until_done(self._clock, produce)
        self._deliveries.counts["rejected"] += 1
        self._commits.finished((record.topic, record.partition), record.offset)

    def _commit_later(self, delivery: Delivery, *, settled: bool) -> None:
        if settled:
            self._commits.finished(delivery.partition, delivery.delivered.offset)

    async def _renew_often(self) -> None:
        while True:
            await self._clock.sleep_ms(self._limits.renew_ms)
            await self._claims.renew()

    async def _commit_often(self, member: GroupMember) -> None:
        while True:
            await self._clock.sleep_ms(self._limits.commit_ms)
            await self._commit(member)

    async def _commit(self, member: GroupMember) -> None:
        offsets = self._commits.due()
        if not offsets:
            return
        try:
            await member.commit(offsets)
        except BrokerError as error:
            _log.warning("committing failed: %s", error)  # what is not committed is delivered again, and skipped
        else:
            self._commits.committed(offsets)

    async def _beat_often(self, member: GroupMember) -> None:
        """Stay a member while the last deliveries end, so that their offsets can be committed."""
        while True:
            with suppress(BrokerError):
                await member.poll(0, 0)
            await self._clock.sleep_ms(self._limits.commit_ms)


class Works:
    """The tasks of a group that can be waited for, and cut off."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self, limit_ms: int) -> None:
        """Until all have ended, also those that others begin meanwhile, or the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_ms / 1_000):
                while self._tasks:
                    await asyncio.wait(self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


async def _leave(member: GroupMember) -> None:
    """Its silence would tell the broker, too, but later."""
    with suppress(BrokerError):
        await member.leave()
