"""What happens if a cancel or a reschedule races with the firing of its task, a thousand times in one history?

Each history holds some waves of tasks that fall due within a second; for each a command is produced up to 50 ms before
or after an instant that counts: the due time, the due time of its retry, or the failure that causes the retry. Every
call to a port is done at one moment and answered at another, so commands are decided before, between and after
release, publish, acknowledgement, mark and checkpoint. In some waves the owner is killed, hands its shards over, or is
frozen until another has them; some publishes are refused, and of some the acknowledgement is lost.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from heapq import heappop, heappush
from random import Random
from typing import Any

from minutewheel.broker.compose import Composer, Submission
from minutewheel.broker.due import Delivered, parse_due
from minutewheel.broker.outcome import Outcome, OutcomeKind, outcome_message, outcome_of
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Produced
from minutewheel.broker.receipt import decode_receipt
from minutewheel.broker.wire import Message, Record
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.retry import delay_ms
from minutewheel.dispatcher.shard import Shard
from minutewheel.store.port import Granted
from minutewheel.store.position import Log
from minutewheel.store.progress import Progress
from minutewheel.store.record import Retry
from minutewheel.store.task import MINUTE_MS, PlainRow
from msgspec.structs import replace

from .deeds import Deed, Publishing, drive
from .ground import START_MS, Ground
from .member import Member
from .race import Race, fault_of, repeated
from .stage import OTHER, SHARD

WAVES = 8
TASKS = 125
OFFSET_MS = 50
AHEAD_MS = (150, 500, 2_500)
SESSION_MS = 10_000
FATES = ("calm", "calm", "killed", "killed", "killed", "moved", "moved", "frozen")
"""One a wave."""
MOVES_MS = (-150, -60, 25, 55, 100, 2_000)


Place = tuple[str, int, int]
"""A ledger's: queue, shard and minute."""


class Races:
    """One history of races of one kind, as its seed draws it: the host of its members, and the watcher of its ports."""

    def __init__(self, kind: str, seed: int, *, traced: bool = False) -> None:
        self.kind, self.seed = kind, seed
        self._traced = traced
        self.random = random = Random(f"{kind} {seed}")
        self.now_ms = START_MS
        self.calm = seed % 4 == 0
        self.counts: Counter[str] = Counter()
        self.races: dict[str, Race] = {}
        self.trace: list[tuple[int, str]] = []
        self.ground = Ground(lambda: self.now_ms, self, SESSION_MS)
        self._logs = self.ground.topics.logs
        self.limits = Limits(
            batch_max=random.choice([100, 2_000]),
            page_rows=random.choice([10, 5_000]),
            lead_ms=random.choice([2_000, 30_000]),
            checkpoint_ms=random.choice([5, 5, 10, 60]),
        )
        self.chunk = random.choice([1, 3, 10])
        self.slow_ms = random.choice([3, 5, 15])
        self.slow_publish_ms = random.choice([5, 20])
        self._composer = Composer(self.ground.topics)
        self._retry = Retry(base_ms=random.choice([300, 800]), factor=1.0, cap_ms=800)
        self._heap: list[tuple[int, int, Member | None, Callable[..., None], tuple[Any, ...]]] = []
        self._ends: dict[tuple[str, int], int] = {}
        self._parked: dict[str, list[tuple[Member, Callable[..., None], tuple[Any, ...]]]] = {}
        self._shards: list[Shard] = []
        self._delivered: list[Delivered] = []
        self._ended: list[Outcome] = []
        self._pushed = self._named = self._workers = 0
        self._owner: Member | None = None
        self._befell_ms: list[int] = []

    def play(self) -> Counter[str]:
        """To its end; an assertion that fails names the seed and the races that it is about."""
        self._take_over()
        start_ms = START_MS + self.random.randrange(1_000, 50_000)
        ids = iter(_ids())
        for fate in self.random.sample(FATES, WAVES):
            self._wave(start_ms, [next(ids) for _ in range(TASKS)], fate)
            start_ms += 12_000 if fate == "frozen" else self.random.choice([3_000, 5_000])
        end_ms = start_ms + 30_000
        while self._heap and self._heap[0][0] <= end_ms:
            at_ms, _, member, work, args = heappop(self._heap)
            self.now_ms = max(self.now_ms, at_ms)
            if member and member.name in self._parked:
                self._parked[member.name].append((member, work, args))
            elif member is None or not member.dead:
                work(*args)
        self._check()
        self.ground.close()
        return self.counts

    # Users.

    def _wave(self, start_ms: int, ids: Sequence[str], fate: str) -> None:
        """Some tasks that fall due one close upon the other, and what happens to their owner meanwhile."""
        random = self.random
        span_ms = random.choice([100, 400, 900])
        if random.random() < 0.3:  # across the end of a minute, where that is not far
            end_ms = -start_ms % MINUTE_MS
            start_ms += end_ms - span_ms // 2 if span_ms < end_ms < 3_000 else 0
        fate_ms = start_ms + random.randrange(-100, span_ms + 150)
        if self.kind == "retry":
            fate_ms += random.choice([0, self._retry.base_ms, self._retry.base_ms])
        if fate != "calm" and not self.calm:
            self._at(fate_ms, self._befall, fate)
        races = [self._enter(id_, start_ms + random.randrange(span_ms)) for id_ in ids]
        at_once: dict[int, list[Race]] = {}
        for race in races:
            at_ms = race.command_ms + random.randint(-20, 20) if race.beside else start_ms - random.choice(AHEAD_MS)
            at_once.setdefault(at_ms, []).append(race)
        for at_ms, some in at_once.items():
            self._at(at_ms, self._submit, some)

    def _enter(self, id_: str, due_ms: int) -> Race:
        random = self.random
        offset_ms = random.randint(-OFFSET_MS, OFFSET_MS)
        through = OTHER if random.random() < 0.15 else SHARD
        scripts = {"cancel": "d d d d fd", "reschedule": "d", "retry": "fd ffd"}
        script = random.choice(scripts[self.kind].split())
        race = Race(self.kind, id_, due_ms, script, offset_ms, through, receipts=[], published=[], started=[])
        race.new_ms = due_ms + random.choice(MOVES_MS)
        race.after_failure = random.random() < 0.3
        # Where task and command come through two partitions, nothing says which of them is first.
        race.beside = self.kind != "retry" and through == SHARD and random.random() < 0.05
        self.races[id_] = race
        if self.kind != "retry":
            self._at(race.command_ms, self._command, race)
        return race

    def _submit(self, races: Sequence[Race]) -> None:
        submissions = [
            Submission(id=race.id, tenant="t", queue="mail", payload=b"1", due=race.due_ms, retry=self._retry)
            for race in races
        ]
        self._produce(*map(self._composer.submit, submissions))

    def _command(self, race: Race) -> None:
        if race.kind == "reschedule":
            message = self._composer.reschedule("t", race.id, due=race.new_ms, receipt=race.id)
        else:
            message = self._composer.cancel("t", race.id, receipt=race.id)
        race.asked_ms = self.now_ms
        self._produce(replace(message, partition=race.through))

    # Workers.

    def _poll(self) -> None:
        """A worker runs what was delivered since the last time, as far as the ledger lets it."""
        self._workers += 1
        places: dict[Place, dict[int, Delivered]] = {}
        for one in self._delivered:
            places.setdefault((one.queue, one.shard, one.minute), {})[one.filing] = one
        self._delivered = []
        for place, some in places.items():
            until_ms = self.now_ms + MINUTE_MS
            claim = self.ground.ledger.claim(place, list(some), f"w{self._workers}", self.now_ms, until_ms)
            for one, answer in zip(some.values(), drive(claim), strict=True):
                if isinstance(answer, Granted):
                    self._start(self.races[one.id], one)

    def _start(self, race: Race, delivered: Delivered) -> None:
        race.started.append(delivered.filing)
        pause_ms = self.random.randrange(2 * OFFSET_MS)
        if race.kind == "retry" and race.after_failure and len(race.started) == 1:
            self._at(self.now_ms + OFFSET_MS + race.offset_ms, self._command, race)
            pause_ms = OFFSET_MS
        self._at(self.now_ms + pause_ms, self._end, race, delivered)

    def _end(self, race: Race, delivered: Delivered) -> None:
        number = len(race.started)
        kind: OutcomeKind = "failed" if race.script[number - 1 : number] == "f" else "done"
        outcome = outcome_of(delivered, kind, starts=delivered.task.starts + 1)
        if race.kind == "retry" and number == 1 and not race.after_failure:
            self._at(self.now_ms + delay_ms(outcome) + race.offset_ms, self._command, race)
        if not self._ended:
            self._at(self.now_ms + 1, self._tell)
        self._ended.append(outcome)

    def _tell(self) -> None:
        """What has ended is told at once, and finished in the ledger."""
        ended, self._ended = self._ended, []
        places: dict[Place, list[int]] = {}
        for one in ended:
            places.setdefault((one.queue, one.shard, one.minute), []).append(one.filing)
        for place, filings in places.items():
            drive(self.ground.ledger.finish(place, filings))
        self._produce(*(outcome_message(self.ground.topics, one) for one in ended))

    def _produce(self, *messages: Message) -> None:
        drive(self.ground.broker.produce(messages))

    # Members.

    def _take_over(self) -> None:
        """A new member takes the shards as soon as nobody has them."""
        if any(self.ground.holder(number) for number in (SHARD, OTHER)):
            self._at(self.now_ms + self.random.randrange(5, 100), self._take_over)
            return
        self._named += 1
        member = self.ground.member(self, f"m{self._named}", self.limits, 100_000, self.chunk)
        for number in (SHARD, OTHER):
            assert member.take(number)
        self._owner = member
        self.after(2_000, member, self._renew, member)
        self.wake(member)
        for works in self._parked.values():  # who was frozen thaws
            for frozen, work, args in works:
                self.after(self.random.randrange(500), frozen, work, *args)
        self._parked.clear()

    def _renew(self, member: Member) -> None:
        if not member.dead:
            member.renew()
            self.after(2_000, member, self._renew, member)

    def _befall(self, fate: str) -> None:
        """It befalls the owner. A session ends with its process, soon or late, or when nobody renews it."""
        member, self._owner = self._owner, None
        if member is None:
            return  # nobody has the shards just now
        self.counts[fate] += 1
        self._befell_ms.append(self.now_ms)
        self.say(fate, member.name)
        pause_ms = self.random.choice([100, 200, 600, 5_000])
        if fate == "killed":
            member.dead = True
            self._at(self.now_ms + pause_ms - 20, self._leave, member)
        elif fate == "moved":
            pause_ms = 5
            for shard in member.shards.values():
                shard.drain()
            self.wake(member)
        else:
            self._parked[member.name] = []
        self._at(self.now_ms + pause_ms, self._take_over)

    def _leave(self, member: Member) -> None:
        drive(member.leasing.leave())

    def wake(self, member: Member) -> None:
        member.turn_by(self.now_ms)

    # The host.

    def after(self, pause_ms: int, member: Member | None, work: Callable[..., None], *args: Any) -> None:
        self._pushed += 1
        heappush(self._heap, (self.now_ms + max(0, pause_ms), self._pushed, member, work, args))

    def _at(self, at_ms: int, work: Callable[..., None], *args: Any) -> None:
        self.after(at_ms - self.now_ms, None, work, *args)

    def say(self, *what: Any) -> None:
        if self._traced:
            self.trace.append((self.now_ms - START_MS, " ".join(map(str, what))))

    def turned(self, member: Member) -> None: ...

    def taken(self, member: Member, shard: Shard) -> None:
        self._shards.append(shard)
        self.say("takes", member.name, shard.shard)

    def due_taken(self, member: Member, dues: list[Due], now_ms: int) -> None: ...

    def behind(self, member: Member, shard: Shard, log: Log, offset: int) -> bool:
        return self._ends.get((self._logs[log], shard.shard), 0) > offset

    def hand(self, deed: Deed) -> None:
        self.after(self._latency(deed) if self.random.random() < 0.3 else 0, deed.member, self._begin, deed)

    def _latency(self, deed: Deed | None = None) -> int:
        """Where publishes take their time, what is due waits at the gate meanwhile."""
        return self.random.randrange(1, self.slow_publish_ms if isinstance(deed, Publishing) else self.slow_ms)

    def _begin(self, deed: Deed) -> None:
        """The member hands it over, if it is still wanted and trusted."""
        if not deed.wanted:
            return
        if deed.member.may_act():
            self.after(self._latency(deed), None, self._land, deed)
        elif isinstance(deed, Publishing):
            deed.member.keep(deed)
        else:
            self.after(200, deed.member, self._begin, deed)

    def _land(self, deed: Deed) -> None:
        """What was under way when its member was killed lands, in parts or whole, or not at all."""
        random = self.random
        if deed.member.dead and random.random() < 0.5:
            for part in deed.parts():
                if random.random() < 0.5:
                    part.do()
            return
        dice = random.random() if isinstance(deed, Publishing) and not self.calm else 1.0
        if dice < 0.02:
            self.counts["publishes refused"] += 1
        else:
            deed.do()
            self.say(deed)
        if dice < 0.04:
            self.counts["publishes not acknowledged"] += 1
            deed.spoil(unknown=True)
        self.after(self._latency(deed), deed.member, deed.tell)

    # The watcher.

    def wrote(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None: ...

    def progressed(self, shard: int, fence: int, before: Progress, after: Progress) -> None: ...

    def stands(self, message: Message, produced: Produced) -> None:
        topics = self.ground.topics
        topic, partition, offset = message.topic, produced.partition, produced.offset
        self._ends[topic, partition] = offset + 1
        if topic in self._logs:
            if self._owner:
                self._owner.turn_by(self.now_ms + self.random.randrange(3))
            return
        record = Record(topic, partition, offset, self.now_ms, message.key, message.value, message.headers)
        if topic == topics.receipts:
            receipt = decode_receipt(record)
            if receipt.op != "outcome":
                self.races[receipt.receipt].receipts.append(receipt)
        elif topic not in topics.fixed:
            delivered = parse_due(record)
            self.races[delivered.id].published.append((self.now_ms, delivered))
            if not self._delivered:
                self.after(self._latency(), None, self._poll)
            self._delivered.append(delivered)

    # The end.

    def _check(self) -> None:
        keys = [f"t/{id_}" for id_ in self.races]
        rows = {row.key: row for row in drive(self.ground.bare_store.tasks(SHARD, keys))}
        wrong: list[str] = []
        for race in self.races.values():
            row = rows.get(f"t/{race.id}")
            fault = fault_of(race, row) or (self.calm and repeated(race))
            if fault:
                wrong.append(f"{fault}: {race}")
            answer = race.receipts[-1].answer if race.receipts else "none"
            self.counts[f"{race.kind}: {answer}"] += 1
            near = any(-300 < race.asked_ms - befell_ms < 600 for befell_ms in self._befell_ms)
            self.counts[f"{race.kind}: {answer}, its owner going"] += near
        self.counts[self.kind] += len(self.races)
        found = "\n".join(wrong[:10])
        assert not wrong, f"{len(wrong)} contradictions; replay with Races({self.kind!r}, {self.seed}).play()\n{found}"
        assert not sum(shard.context.counts.remainders for shard in self._shards if shard.claimed)


@cache
def _ids() -> list[str]:
    """Enough ids of the shard for one history."""
    found: list[str] = []
    n = 0
    while len(found) < WAVES * TASKS:
        if shard_of(f"t/r{n}") == SHARD:
            found.append(f"r{n}")
        n += 1
    return found
