"""What happens if everything that can go wrong does, in an order that a seed decides?

One `World` is one history: some members (real shards, gates, wheels, leases) over the real embedded twins in memory,
users, workers, and a queue of what is to happen at which virtual moment. Nothing waits and nothing runs in a thread;
all chance comes from one `Random`, so a seed gives one history. Each deed of a member is done at one moment and
answered at another, and in the faulty part of a history may fail, land late, or leave nobody knowing.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from heapq import heappop, heappush
from random import Random
from typing import Any

from minutewheel.broker.wire import Topics
from minutewheel.coordinator import CoordinatorUnavailable, LeaseLost
from minutewheel.dispatcher.shard import Shard
from minutewheel.store.position import Log
from minutewheel.store.task import SHARDS

from .deeds import Deed, Publishing
from .faults import FAULTS, strike
from .ground import START_MS, Ground
from .invariants import Invariants
from .member import Member
from .plan import DEED_FATES, Plan, draw_plan
from .users import Users
from .workers import Workers

POLL_MS = 10_000
TAIL_MS = 900_000
TIGHT = 10
"""A read-ahead of so few records is used up by fresh tasks that wait for a checkpoint."""
LATE_MS = (300, 2_000, 12_000, 40_000)


class Breach(AssertionError):
    """An invariant does not hold."""


class World:
    """One history. `run` plays it to its end, or raises `Breach`."""

    def __init__(self, seed: int, plan: Plan | None = None, *, faulty: bool = True) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.plan = plan or draw_plan(self.random, faulty=faulty)
        self.limits = self.plan.limits
        self.faulty = self.plan.faulty
        self.now_ms = START_MS
        self.calm_ms = 0
        self.counts: Counter[str] = Counter()
        self.trace: list[tuple[Any, ...]] = []
        self.topics = Topics()
        self._logs = self.topics.logs
        self.numbers = sorted(self.random.sample(range(SHARDS), self.plan.shards))
        self.members: list[Member] = []
        self.reigns: list[Shard] = []
        self.ends: dict[tuple[str, int], int] = {}
        self.scripts: dict[tuple[str, int], str] = {}
        self.fresh: dict[str, int] = {}
        self.healed = False
        self.clocks_off = False
        self._heap: list[tuple[int, int, Member | None, Callable[..., None], tuple[Any, ...]]] = []
        self._pushed = 0
        self._named = 0
        self._polled: dict[tuple[int, int, Log], int] = {}
        self.outage_until_ms: dict[bool, int] = {}
        self._forced: list[str] = []
        self._late = 0
        self.invariants = Invariants(self)
        self.ground = Ground(lambda: self.now_ms, self.invariants, self.plan.session_ms)
        self.broker, self.ledger, self.holder = self.ground.broker, self.ground.ledger, self.ground.holder
        self.workers = Workers(self)
        self.users = Users(self, self.plan.keys_a_shard)

    # What tests and models ask.

    @property
    def close_grace_ms(self) -> int:
        return self.limits.close_after_ms + 3 * self.limits.close_look_ms + 10_000

    def rightful(self, number: int) -> bool:
        """Is what lands now for this shard from the member that has the lease?"""
        return self._landing is not None and self._landing.member.name == self.holder(number) and self._landing.timely

    _landing: Deed | None = None

    def say(self, *what: Any) -> None:
        self.trace.append((self.now_ms - START_MS, *what))

    def fault(self, what: str, *details: Any) -> None:
        self.say("BREACH", what, *details)
        raise Breach(f"{what}: {' '.join(map(str, details))}")

    def digest(self) -> str:
        """The trace in 16 characters."""
        hashed = blake2b(digest_size=8)
        for line in self.trace:
            hashed.update(repr(tuple(map(str, line))).encode())
        return hashed.hexdigest()

    # Chance.

    def latency(self) -> int:
        dice = self.random.random()
        if self.healed or not self.faulty:
            return self.random.randrange(1, 20)
        if dice < 0.6:
            return self.random.randrange(1, 6)
        if dice < 1 - self.plan.slow:
            return self.random.randrange(5, 60)
        return self.random.choice([100, 400, 1_500, 6_000])

    def strikes(self, what: str) -> bool:
        """Does this small fault happen now?"""
        if self.healed or self.random.random() >= self.plan.strike_rate:
            return False
        self.counts[what] += 1
        return True

    # Time.

    def after(self, pause_ms: int, member: Member | None, work: Callable[..., None], *args: Any) -> None:
        self._pushed += 1
        heappush(self._heap, (self.now_ms + max(0, pause_ms), self._pushed, member, work, args))

    def run(self) -> "World":
        """Play the history."""
        for _ in range(self.plan.members):
            self._start_member()
        for _ in range(self.plan.acts):
            self.after(self.random.randrange(int(self.plan.chaos_ms * 0.8)), None, self.users.act)
        if self.faulty:
            for fault in ("crash", "overlap"):
                self.after(self.random.randrange(5_000, self.plan.chaos_ms), None, strike, self, fault)
            self.after(
                self.random.randrange(self.plan.chaos_ms // 2), None, self._force, ["late, unknown", "done, unknown"]
            )
        self.after(self.plan.chaos_ms, None, self._heal)
        while self._heap:
            at_ms, _, member, work, args = heappop(self._heap)
            self.now_ms = max(self.now_ms, at_ms)
            if member and member.paused_until_ms > self.now_ms:
                self.after(member.paused_until_ms - self.now_ms + self.random.randrange(20), member, work, *args)
                continue
            self.counts["steps"] += 1
            work(*args)
            if not self.healed and self.random.random() < self.plan.step_rate:
                strike(self, self.random.choice(FAULTS))
        self.invariants.at_end()
        return self

    def _force(self, fates: list[str]) -> None:
        self._forced += fates

    def _heal(self) -> None:
        """No more faults: clocks are right, everything that is late lands, and life goes on to its quiet end."""
        if self.faulty and not (self.counts["overlap"] and self.counts["crash"] and not self._forced):
            if not self.counts["crash"]:
                strike(self, "crash")
            if not self.counts["overlap"]:
                strike(self, "overlap")
            self.after(20_000, None, self._heal)
            return
        self.healed = True
        self.say("healed")
        for member in self.members:
            member.clock.skew_ms = 0
            member.slack_until_ms = member.paused_until_ms = 0
        self.outage_until_ms.clear()
        self._last_ms = self.now_ms + TAIL_MS
        self.after(15_000, None, self._look_for_calm)

    def _look_for_calm(self) -> None:
        """When what the faults left behind is worked off, some more tasks come, and must not be late."""
        left = self.invariants.unread() or self._late
        if left and self.now_ms > self._last_ms:
            self.fault("never applied", left)
        if left:
            self.after(2_000, None, self._look_for_calm)
            return
        self.calm_ms = self.now_ms
        self.say("calm")
        for offset_ms in (0, 700, 12_000, 55_000, 56_000):
            self.after(self.random.randrange(50, 15_000), None, self._fresh, offset_ms)
        self.after(50_000, None, self._look_for_end)

    def _fresh(self, offset_ms: int) -> None:
        """One that is due soon may wait behind others for the checkpoints of two batches."""
        key = self.users.submit_fresh(self.now_ms + offset_ms)
        # Two checkpoints: that of the batch before and its own; a third where it can't be read before one gives room.
        waits = 2 + (self.limits.read_ahead < TIGHT)
        self.fresh[key] = 0 if offset_ms > 10_000 else waits * self.limits.checkpoint_ms

    def _look_for_end(self) -> None:
        left = self.invariants.unquiet()
        if not left:
            self._heap.clear()
        elif self.now_ms > self._last_ms:
            self.fault("never at rest", *left)
        else:
            self.after(5_000, None, self._look_for_end)

    # Members.

    def _start_member(self) -> None:
        self._named += 1
        name = f"m{self._named}"
        member = self.ground.member(self, name, self.limits, self.plan.tasks_max, self.plan.chunk)
        self.members.append(member)
        self.say("joins", name)
        self.after(1, member, self._renew, member)
        self.after(self.random.randrange(1, 1_000), member, self._balance, member)

    def _renew(self, member: Member) -> None:
        if member.dead:
            return
        if not member.slack:
            member.renew()
        if member.dead:
            self.say("session over", member.name)
            self.gone(member)
            return
        self.after(max(200, min(3_000, member.leasing.pause_ms)), member, self._renew, member)

    def gone(self, member: Member) -> None:
        self.members.remove(member)
        self.after(self.random.randrange(100, 8_000), None, self._start_member)

    def _balance(self, member: Member) -> None:
        """Take free shards."""
        if member.dead:
            return
        if member.may_act() and not member.slack:
            with suppress(CoordinatorUnavailable, LeaseLost):
                member.release_rest()
                for number in self.numbers:
                    if number not in member.shards and not self.holder(number) and self.random.random() < 0.7:
                        member.take(number)
            self.wake(member)
        self.after(self.random.randrange(500, 3_000), member, self._balance, member)

    def wake(self, member: Member) -> None:
        member.turn_by(self.now_ms)

    # The host of members.

    def turned(self, member: Member) -> None:
        self.invariants.memory(member)

    def taken(self, member: Member, shard: Shard) -> None:
        self.reigns.append(shard)
        self.say("takes", member.name, shard.shard, shard.fence)

    def due_taken(self, member: Member, dues: list[Any], now_ms: int) -> None:
        self.invariants.due_taken(member, dues, now_ms)

    def behind(self, _: Member, shard: Shard, log: Log, offset: int) -> bool:
        """Is there something to read, or is it time to look again?"""
        place = (shard.shard, shard.fence, log)
        if self.ends.get((self._logs[log], shard.shard), 0) > offset:
            return True
        if self.now_ms - self._polled.get(place, 0) >= POLL_MS:
            self._polled[place] = self.now_ms
            return True
        return False

    def moved(self, topic: str, partition: int, end: int) -> None:
        self.ends[topic, partition] = end
        if topic in self.topics.logs:
            for member in self.members:
                if partition in member.shards:
                    member.turn_by(self.now_ms + self.random.randrange(1, 10))

    # Deeds.

    def hand(self, deed: Deed) -> None:
        self.after(self.latency() if self.random.random() < 0.5 else 0, deed.member, self._begin, deed)

    def _begin(self, deed: Deed) -> None:
        """The member hands it over, if it is still wanted and trusted."""
        if not deed.wanted:
            return
        if not deed.member.may_act():
            if isinstance(deed, Publishing):
                deed.member.keep(deed)
            else:
                self.after(200, deed.member, self._begin, deed)
            return
        self.invariants.acts(deed.member, deed.shard)
        if deed.member.slack and self.holder(deed.shard.shard) not in {deed.member.name, None}:
            self.counts["overlapping deeds"] += 1
        deed.begun_ms = self.now_ms
        self._meet(deed, self._fate(deed))

    def _fate(self, deed: Deed) -> str:
        if self.healed:
            return "done"
        if deed.writes and self._forced:
            return self._forced.pop()
        if self.outage_until_ms.get(deed.of_broker, 0) > self.now_ms:
            return "not done"
        if self.random.random() >= self.plan.deed_rate:
            return "done"
        return self.random.choice(DEED_FATES) if deed.writes else "not done"

    def _meet(self, deed: Deed, fate: str) -> None:
        random = self.random
        if fate == "done":
            self.after(self.latency(), None, self._land, deed, deed)
            return
        self.say(fate, deed)
        self.counts[fate] += 1
        parts = deed.parts() if fate == "torn" else []
        if fate == "done, unknown":
            self._do(deed)
        elif fate == "late, unknown":
            self._lands_late(deed, deed.twin())
        for part in parts:
            if random.random() < 0.5:
                self._do(part)
            elif random.random() < 0.5:
                self._lands_late(deed, part)
        deed.spoil(unknown=fate != "not done")
        self.after(self.latency(), deed.member, self._tell, deed)

    def _do(self, deed: Deed) -> None:
        deed.timely = self.now_ms - deed.begun_ms < self.plan.session_ms * 2 // 5
        self._landing = deed
        deed.do()
        self._landing = None
        self.say("does", deed)

    def _land(self, deed: Deed, _: Deed) -> None:
        """What was under way at a crash may land or not."""
        if deed.member.dead and self.random.random() < 0.5:
            return
        self._do(deed)
        self.after(self.latency(), deed.member, self._tell, deed)

    def _lands_late(self, deed: Deed, twin: Deed) -> None:
        self._late += 1
        self.after(self.random.choice(LATE_MS), None, self._land_late, deed, twin)

    def _land_late(self, deed: Deed, twin: Deed) -> None:
        twin.begun_ms = deed.begun_ms
        self._late -= 1
        self.say("late", twin)
        self.counts["late writes"] += 1
        if deed.member.dead:
            self.counts["late writes of the dead"] += 1
        self._do(twin)

    def _tell(self, deed: Deed) -> None:
        if not deed.member.dead:
            deed.tell()
