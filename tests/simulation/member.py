"""How does one dispatcher process behave when no loop runs it?

The shell of `dispatcher.dispatcher` turn by turn, with the real shards, gate, leases and publishing in it. All that
would wait is handed to a *host* as a deed: the world of random histories, or the stage of a scripted one.
"""

from collections.abc import Callable
from typing import Protocol

from minutewheel.broker.port import Broker
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Topics
from minutewheel.coordinator import CoordinatorUnavailable, LeaseLost
from minutewheel.dispatcher.activity import Asked
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.decoding import decoding
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.gate import Gate
from minutewheel.dispatcher.leasing import Leasing
from minutewheel.dispatcher.memory import Budget
from minutewheel.dispatcher.perform import Performer
from minutewheel.dispatcher.publishing import Landed, outgoing
from minutewheel.dispatcher.queues import Queues
from minutewheel.dispatcher.shard import OVER, Shard
from minutewheel.store.port import Store
from minutewheel.store.position import Log

from .deeds import Asking, Deed, Publishing, Reading, drive
from .line import Line

CLOCK_LOOK_MS = 1_000
CLOCK_OFFSET_MAX_MS = 500
CHUNKS_IN_FLIGHT = 3
RETRY_MS = 200
IDLE_MS = 5_000
"""A member takes a turn so often, whatever its shards say."""


class Host(Protocol):
    """Whoever runs members: it lets deeds happen."""

    now_ms: int

    def hand(self, deed: Deed) -> None: ...
    def wake(self, member: "Member") -> None: ...
    def after(self, pause_ms: int, member: "Member", work: Callable[..., None], *args: object) -> None: ...
    def turned(self, member: "Member") -> None: ...
    def taken(self, member: "Member", shard: Shard) -> None: ...
    def due_taken(self, member: "Member", dues: list[Due], now_ms: int) -> None: ...
    def behind(self, member: "Member", shard: Shard, log: Log, offset: int) -> bool: ...


class MemberClock:
    """One process's clocks, which may be off the world's."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.skew_ms = 0
        self.highest_ms = 0

    def now_ms(self) -> int:
        now_ms = self._host.now_ms + self.skew_ms
        self.highest_ms = max(self.highest_ms, now_ms)
        return now_ms

    def monotonic_ms(self) -> int:
        return self._host.now_ms


class Member:
    """One dispatcher. `slack_until_ms`: till then it believes it is trusted, whatever is true."""

    def __init__(
        self,
        host: Host,
        name: str,
        leasing: Leasing,
        clock: MemberClock,
        *,
        store: Store,
        broker: Broker,
        topics: Topics,
        decoder: Decoder,
        queues: Queues,
        limits: Limits,
        budget: Budget,
        chunk: int,
    ) -> None:
        self.name = name
        self.leasing = leasing
        self.clock = clock
        self.broker = broker
        self.topics = topics
        self.limits = limits
        self.budget = budget
        self.performer = Performer(store, broker, topics)
        self.gate = Gate()
        self.shards: dict[int, Shard] = {}
        self.line: Line
        self.dead = False
        self.unreleased: set[int] = set()
        self.slack_until_ms = 0
        self.paused_until_ms = 0
        self._turn_at_ms: int | None = None
        self._host = host
        self._decoder = decoder
        self._queues = queues
        self._chunk = chunk
        self._chunks = 0
        self._confirmed_ms = 0
        self._looked_ms = 0
        self._reading: set[tuple[int, int, Log]] = set()

    @property
    def slack(self) -> bool:
        return self._host.now_ms < self.slack_until_ms

    def may_act(self) -> bool:
        return self.slack or self.leasing.may_act()

    # Leases.

    def renew(self) -> None:
        """As the shell does it. Afterwards the member may be over."""
        try:
            for number in drive(self.leasing.renew(self.shards)):
                self.shards[number].lose("another owner")
        except LeaseLost:
            self.die("session over")

    def die(self, reason: str) -> None:
        for shard in self.shards.values():
            shard.lose(reason)
        self.dead = True

    def take(self, number: int, above: int = 0) -> Shard | None:
        fence = drive(self.leasing.acquire(number, above))
        if fence is None:
            return None
        shard = Shard(
            shard=number,
            fence=fence,
            member=self.name,
            now_ms=self.clock.now_ms(),
            topics=self.topics,
            decode=decoding(number, self._decoder, self.topics, self._queues.admits),
            budget=self.budget,
            limits=self.limits,
        )
        self.shards[number] = shard
        self._host.taken(self, shard)
        return shard

    # Turns.

    def turn_by(self, at_ms: int) -> None:
        """Take a turn at the latest then, on the world's clock."""
        if self._turn_at_ms is None or at_ms < self._turn_at_ms:
            self._turn_at_ms = at_ms
            self._host.after(at_ms - self._host.now_ms, self, self._turn_at, at_ms)

    def _turn_at(self, at_ms: int) -> None:
        if self.dead or self._turn_at_ms != at_ms:
            return
        self._turn_at_ms = None
        self.turn()
        self._host.turned(self)
        if self.shards:
            next_ms, soon_ms = self.next_ms(), self._host.now_ms + IDLE_MS
            self.turn_by(max(self._host.now_ms + 1, soon_ms if next_ms is None else min(soon_ms, next_ms)))

    def turn(self) -> None:
        now_ms = self.clock.now_ms()
        self._bury()
        if self._host.now_ms - self._looked_ms >= CLOCK_LOOK_MS:
            self._looked_ms = self._host.now_ms
            self._confirmed_ms = self.clock.skew_ms
        steady = abs(self.clock.skew_ms - self._confirmed_ms) <= CLOCK_OFFSET_MAX_MS  # it has not jumped since
        confirmed = steady and abs(self._confirmed_ms) <= CLOCK_OFFSET_MAX_MS
        may_act = self.may_act()
        for shard in self.shards.values():
            shard.clock_confirmed = confirmed
            self._ask(shard, shard.step(now_ms))
            if may_act:
                self._offer(shard, now_ms)
            self._read_on(shard)
        while may_act and self._chunks < CHUNKS_IN_FLIGHT and (dues := self.gate.release(now_ms, self._chunk)):
            self._send(dues)

    def next_ms(self) -> int | None:
        """On the world's clock."""
        times = [at_ms for shard in self.shards.values() if (at_ms := shard.next_ms()) is not None]
        return min(times) - self.clock.skew_ms if times else None

    def _offer(self, shard: Shard, now_ms: int) -> None:
        dues = shard.take_due(now_ms, self._chunk)
        if dues:
            self._host.due_taken(self, dues, now_ms)
            self.gate.offer(dues, now_ms)

    def _bury(self) -> None:
        for number, shard in list(self.shards.items()):
            if shard.life in OVER:
                del self.shards[number]
                try:
                    if shard.stored_fence:
                        self.take(number, shard.stored_fence)
                    else:
                        drive(self.leasing.release(number))
                except (CoordinatorUnavailable, LeaseLost):
                    self.unreleased.add(number)

    def release_rest(self) -> None:
        """What could not be released when its reign ended is released as soon as may be, or it stands idle."""
        for number in sorted(self.unreleased - self.shards.keys()):
            drive(self.leasing.release(number))
        self.unreleased.clear()

    # Deeds.

    def _ask(self, shard: Shard, asked: list[Asked]) -> None:
        for one in asked:
            self._host.hand(Asking(self, shard, one))

    def resume(self, deed: Asking) -> None:
        self._ask(deed.shard, deed.shard.resume(deed.activity, deed.answer, self.clock.now_ms()))
        self._host.wake(self)

    def _read_on(self, shard: Shard) -> None:
        for log in Log:
            if (shard.shard, shard.fence, log) in self._reading:
                continue
            wanted = shard.wants(log)
            if wanted and self._host.behind(self, shard, log, wanted.offset):
                self._reading.add((shard.shard, shard.fence, log))
                self._host.hand(Reading(self, shard, log, wanted.offset, wanted.limit))

    def read(self, deed: Reading) -> None:
        self._reading.discard((deed.shard.shard, deed.shard.fence, deed.log))
        if deed.answer is not None:
            deed.shard.deliver(deed.log, deed.answer)
        self._host.wake(self)

    def _send(self, dues: list[Due]) -> None:
        for shard in self.shards.values():
            some = [due for due in dues if due.shard == shard.shard]
            if some:
                shard.released(some)
                self._chunks += 1
                sent = outgoing(some, self.clock.now_ms(), self.topics, self._queues.silent)
                self._host.hand(Publishing(self, shard, sent))

    def published(self, deed: Publishing, result: Landed) -> None:
        deed.shard.fired(result.fired, self.clock.now_ms())
        if result.back:
            self._host.after(RETRY_MS, self, self._offer_again, deed.shard, result.back)
        if result.next:
            self._host.hand(Publishing(self, deed.shard, result.next))
        else:
            self._chunks -= 1
        self._host.wake(self)

    def keep(self, deed: Publishing) -> None:
        """Without trust nothing is handed to the broker: it is offered again later."""
        self._chunks -= 1
        self._host.after(RETRY_MS, self, self._offer_again, deed.shard, [out.due for out in deed.sent])

    def _offer_again(self, shard: Shard, dues: list[Due]) -> None:
        shard.put_back(dues)
        self.gate.offer([due for due in dues if due.live], self.clock.now_ms())
        self._host.wake(self)
