"""How does one dispatcher process serve its share of the shards?

The shell around the pure parts: it takes shards by leases, performs what they ask for, reads their logs, lets due
tasks through the gate and publishes them, and hands its shards over when it is told to stop. It decides nothing about
tasks. Everything runs in one event loop; each wait is bounded by a second, so a clock that steps is noticed.
"""

import asyncio
from collections.abc import Iterable

import structlog

from ..broker.errors import BrokerError, OffsetGone
from ..broker.port import Broker
from ..broker.submission import Decoder
from ..broker.wire import Topics
from ..coordinator import Coordinator, CoordinatorUnavailable, LeaseLost
from ..store.errors import StoreError
from ..store.port import Catalog, Queue, Store
from ..store.position import Log
from ..store.task import SHARDS
from .activity import Asked
from .clock import Clock
from .context import Limits
from .decoding import decoding
from .due import Due, by_shard
from .gate import Gate
from .leasing import Leasing
from .memory import Budget
from .perform import Performer
from .publishing import Outgoing, landed, outgoing
from .queues import Queues
from .shard import LEAVING, OVER, Shard

log = structlog.get_logger("minutewheel.dispatcher")

CHUNK = 2_000
"""Tasks handed to the producer at once, whatever is due: the loop is never busy with firing alone for long."""
CHUNKS_IN_FLIGHT = 8
FETCH_RECORDS = 500
FETCH_WAIT_MS = 5_000
LOOK_MS = 1_000
LEASE_LOOK_MS = 250
"""The longest pause between two looks at members and owners."""
HAND_OVER_LOOK_MS = 50
"""The same while another one is to hand over shards to this one: each stands still until the next look."""
RETRY_MS = 200
REFUSED = {"fence refused", "claim refused", "another owner"}
"""Why a shard was left, where somebody else had it already: a stale write met the fence, or a lease was taken away."""
GONE_S = 60
"""Pause between two alarms for one log that has lost records which nobody has applied."""
CLOCK_OFFSET_MAX_MS = 500


class Dispatcher:
    """One dispatcher. `run` serves until `stop`; it is made for one run."""

    def __init__(
        self,
        *,
        store: Store,
        catalog: Catalog,
        broker: Broker,
        coordinator: Coordinator,
        member: str,
        clock: Clock,
        decoder: Decoder,
        queues: Queues,
        topics: Topics,
        limits: Limits,
        budget: Budget,
        settle_ms: int = 5_000,
    ) -> None:
        self.member = member
        self.joined = False
        self.shards: dict[int, Shard] = {}
        self.gate = Gate()
        self._catalog = catalog
        self._broker = broker
        self._coordinator = coordinator
        self._clock = clock
        self._decoder = decoder
        self._queues = queues
        self._topics = topics
        self._limits = limits
        self._budget = budget
        self._settle_ms = settle_ms
        self._performer = Performer(store, broker, topics)
        self._chunks = 0
        self._clock_confirmed = False
        self._trusted = False
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._over = asyncio.Event()
        self._room: dict[int, asyncio.Event] = {}
        self._readers: dict[int, list[asyncio.Task[None]]] = {}
        self._stirred: set[int] = set()
        self._moved: set[int] = set()
        self._next_ms: dict[int, int | None] = {}

    def stop(self) -> None:
        """Hand all shards over and end. Safe to call again."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        self._leasing = await Leasing.join(self._coordinator, self.member, self._clock, self._settle_ms)
        self.joined = True
        log.info("joined", member=self.member)
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                background = [group.create_task(work) for work in (self._keep_leases(), self._look_around())]
                await self._turns()
                for task in background:
                    task.cancel()
        finally:
            await self._leasing.leave()
            log.info("left", member=self.member)

    # Leases.

    async def _keep_leases(self) -> None:
        """Renew; take and hand over what the balance says."""
        try:
            while True:
                for shard in await self._leasing.renew(self.shards) & self.shards.keys():
                    self._lose(shard, "another owner")
                    self._broker.purge()
                await self._look_for_moves(self._clock.monotonic_ms() + min(self._leasing.pause_ms, LEASE_LOOK_MS))
        except LeaseLost:
            self._trust()
            for shard in list(self.shards):
                self._lose(shard, "session over")
            self.stop()
            self._over.set()

    async def _look_for_moves(self, until_ms: int) -> None:
        """Once; again and again while another one is to hand over shards to this one."""
        while True:
            if not self._stopping.is_set():
                await self._balance()
            left_ms = max(0, until_ms - self._clock.monotonic_ms())
            again = self._leasing.expects and left_ms > HAND_OVER_LOOK_MS
            await asyncio.sleep((HAND_OVER_LOOK_MS if again else left_ms) / 1_000)
            if not again:
                return

    async def _balance(self) -> None:
        """No shard waits for another one's lease: each is taken by itself."""
        try:
            take, give = await self._leasing.moves(self.shards)
        except CoordinatorUnavailable:
            return
        given = [number for number in give if self.shards[number].life not in LEAVING]
        self._drain(given)
        for number in take:
            self._group.create_task(self._take(number))
        if take or given:
            log.info("shards move", taking=len(take), giving=len(given), owned=len(self.shards))

    async def _take(self, number: int, above: int = 0) -> None:
        """Take a free shard. What fails is tried again when the next look finds it free."""
        try:
            fence = await self._leasing.acquire(number, above)
        except (CoordinatorUnavailable, LeaseLost) as error:
            log.debug("shard not taken", shard=number, error=str(error))
            return
        if fence is None or self._stopping.is_set():
            return
        shard = Shard(
            shard=number,
            fence=fence,
            member=self.member,
            now_ms=self._clock.now_ms(),
            topics=self._topics,
            decode=decoding(number, self._decoder, self._topics, self._queues.admits),
            budget=self._budget,
            limits=self._limits,
        )
        self.shards[number] = shard
        self._room[number] = asyncio.Event()
        self._readers[number] = [self._group.create_task(self._read(shard, name)) for name in Log]
        self._stir(number)
        log.debug("shard taken", shard=number, fence=fence)

    def _lose(self, number: int, reason: str) -> None:
        self.shards[number].lose(reason)
        self._stir(number)

    def _stir(self, number: int) -> None:
        """Something was told to this shard: let it take its steps in the next turn."""
        self._stirred.add(number)
        self._wake.set()

    # Turns.

    async def _turns(self) -> None:
        """Turn after turn until all shards are handed over."""
        going = False
        while True:
            self._wake.clear()
            self._bury()
            if self._stopping.is_set():
                if not going:
                    self._group.create_task(self._leasing.withdraw())
                    self._drain(self.shards)
                    going = True
                if not self.shards:
                    return
            self._turn()
            await self._sleep()

    def _drain(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.shards[number].drain()
            self._stir(number)

    def _turn(self) -> None:
        """Let the shards that have something to do take their steps, then let due tasks out."""
        now_ms = self._clock.now_ms()
        may_act = self._trust()
        timely = {number for number, at_ms in self._next_ms.items() if at_ms is not None and at_ms <= now_ms}
        stirred, self._stirred = self._stirred | timely, set()
        moved, self._moved = self._moved | stirred, set()
        for number in moved & self.shards.keys():
            shard = self.shards[number]
            if number in stirred:
                shard.clock_confirmed = self._clock_confirmed
                self._perform_all(shard, shard.step(now_ms))
            if may_act:
                self.gate.offer(shard.take_due(now_ms, CHUNK), now_ms)
            self._room[number].set()
            self._next_ms[number] = shard.next_ms()
            if shard.life in OVER:
                self._stir(number)  # to be buried at once
        while may_act and self._chunks < CHUNKS_IN_FLIGHT and (dues := self.gate.release(now_ms, CHUNK)):
            self._send(dues)

    def _trust(self) -> bool:
        """May this dispatcher act? Once it may not, what the producer holds unsent is dropped and given back."""
        trusted, self._trusted = self._trusted, self._leasing.may_act()
        if trusted and not self._trusted:
            self._broker.purge()
        return self._trusted

    async def _sleep(self) -> None:
        """Until something happens, a shard has something to do, or a second has passed."""
        if self._stirred:
            await asyncio.sleep(0)
            return
        now_ms = self._clock.now_ms()
        next_ms = min((at_ms for at_ms in self._next_ms.values() if at_ms is not None), default=now_ms + LOOK_MS)
        try:
            async with asyncio.timeout(min(max(1, next_ms - now_ms), LOOK_MS) / 1_000):
                await self._wake.wait()
        except TimeoutError:
            return

    def _bury(self) -> None:
        """Let go of the shards whose reign is over, and take those again whose claim met a higher fence."""
        over = {number: shard for number, shard in self.shards.items() if shard.life in OVER}
        for number, shard in over.items():
            del self.shards[number], self._room[number]
            self._next_ms.pop(number, None)
            for reader in self._readers.pop(number):
                reader.cancel()
            noted = log.warning if shard.reason in REFUSED else log.debug
            noted("shard left", shard=number, life=shard.life, reason=shard.reason)
            again = shard.stored_fence and not self._stopping.is_set()
            self._group.create_task(self._take(number, shard.stored_fence) if again else self._release(number))

    async def _release(self, number: int) -> None:
        try:
            await self._leasing.release(number)
        except LeaseLost:
            return  # with the session, all its leases are free
        except CoordinatorUnavailable as error:
            log.warning("lease not released", shard=number, error=str(error))

    # Effects.

    def _perform_all(self, shard: Shard, asked: Iterable[Asked]) -> None:
        for one in asked:
            self._group.create_task(self._perform(shard, one))

    async def _perform(self, shard: Shard, asked: Asked) -> None:
        """Perform one effect and hand the answer back. Without trust nothing is written: it waits for its return."""
        while not self._leasing.may_act():
            if shard.life in OVER or self._over.is_set():
                return
            await asyncio.sleep(RETRY_MS / 1_000)
        answer = await self._performer.perform(shard.shard, asked.effect)
        self._perform_all(shard, shard.resume(asked.activity, answer, self._clock.now_ms()))
        self._moved.add(shard.shard)
        self._wake.set()

    async def _read(self, shard: Shard, name: Log) -> None:
        """Read one log of a shard on, for as long as the shard wants any."""
        topic, room = self._topics.logs[name], self._room[shard.shard]
        while shard.life not in OVER:
            wanted = shard.wants(name)
            if wanted is None:
                room.clear()
                await room.wait()
                continue
            try:
                limit = min(wanted.limit, FETCH_RECORDS)
                fetched = await self._broker.fetch(topic, shard.shard, wanted.offset, limit, FETCH_WAIT_MS)
                if fetched.incarnation != wanted.incarnation:
                    raise OffsetGone("the topic was made anew")  # noqa: TRY301 - the same alarm, and the same way out
            except OffsetGone as error:
                # Never a silent reset: what stood there may be lost, and people decide (docs/kafka.md).
                log.critical("offset gone", topic=topic, shard=shard.shard, offset=wanted.offset, error=str(error))
                await asyncio.sleep(GONE_S)
                continue
            except BrokerError as error:
                log.warning("log unreadable", topic=topic, shard=shard.shard, error=str(error))
                await asyncio.sleep(LOOK_MS / 1_000)
                continue
            shard.deliver(name, fetched)
            if self._queues.met:
                await self._declare()
            if fetched.records:
                self._stir(shard.shard)

    # Publishing.

    def _send(self, dues: list[Due]) -> None:
        for number, some in by_shard(dues).items():
            self.shards[number].released(some)
        self._chunks += 1
        sent = outgoing(dues, self._clock.now_ms(), self._topics, self._queues.silent)
        self._group.create_task(self._publish(sent, {n: self.shards[n] for n in {due.shard for due in dues}}))

    async def _publish(self, sent: list[Outgoing], owners: dict[int, Shard]) -> None:
        """Produce until each filing of the chunk is fired or given back to the gate."""
        try:
            while sent:
                if not self._leasing.may_act():
                    await self._give_back([out.due for out in sent], owners)
                    return
                result = landed(sent, await self._broker.produce([out.message for out in sent]), self._topics)
                now_ms = self._clock.now_ms()
                for number, fired in by_shard(result.fired).items():
                    owners[number].fired(fired, now_ms)
                    self._stir(number)
                if result.back:
                    await self._give_back(result.back, owners)
                sent = result.next
        finally:
            self._chunks -= 1
            self._wake.set()

    async def _give_back(self, dues: list[Due], owners: dict[int, Shard]) -> None:
        """The broker took none of these: offer them again after a moment, as they stood."""
        log.warning("not published, kept", tasks=len(dues))
        await asyncio.sleep(RETRY_MS / 1_000)
        for number, some in by_shard(dues).items():
            owners[number].put_back(some)
            self._stir(number)
        self.gate.offer([due for due in dues if due.live], self._clock.now_ms())

    # Surroundings.

    async def _look_around(self) -> None:
        """Once a second: the queues' declarations, and whether the clock agrees with the broker's."""
        while True:
            try:
                if self._queues.met:
                    await self._declare()
                await self._learn_queues()
                before_ms = self._clock.now_ms()
                offset_ms = await self._broker.time_ms() - before_ms
                self._clock_confirmed = abs(offset_ms) <= CLOCK_OFFSET_MAX_MS
            except Exception as error:  # noqa: BLE001  nothing here may end the dispatcher; closing stops meanwhile
                self._clock_confirmed = False
                log.warning("surroundings unknown", error=str(error))
            await asyncio.sleep(LOOK_MS / 1_000)

    async def _learn_queues(self) -> None:
        queues = await self._catalog.queues()
        self._queues.learn([q.name for q in queues], [q.name for q in queues if q.outcomes == "none"])

    async def _declare(self) -> None:
        """Declare the queues that were met, with topics of their own; they are held at the gate until then."""
        met = sorted(self._queues.met)
        now_ms = self._clock.now_ms()
        for name in met:
            self.gate.hold(name, "its topic is being made", now_ms)
        try:
            await self._broker.create_topics({self._topics.due(name): SHARDS for name in met})
            for name in met:
                await self._catalog.put_queue(Queue(name))
            await self._learn_queues()
        except (BrokerError, StoreError) as error:
            log.warning("queues not declared yet", queues=met, error=str(error))
            return
        for name in met:
            self.gate.resume(name, self._clock.now_ms())
