"""How does one dispatcher live through a stretch of the day, without a clock?

Its shards, its gate and the timing wheels are the product's. Time moves in *turns* of a fixed length: what was asked of
the store in one turn is answered in the next, what was published in one is acknowledged in the next. Turns in which
nothing can happen are skipped. A stretch ends with the hand-over of all shards, as on a rolling restart, and the next
one begins with new owners; so all that lasts from one to the next is what the store and the logs keep.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ...broker.command import Cancel, Reschedule, Standing, Submit
from ...broker.outcome import Outcome, outcome_of_filing
from ...broker.wire import Record, Topics
from ...dispatcher.activity import Asked
from ...dispatcher.context import Limits
from ...dispatcher.due import Due, by_shard
from ...dispatcher.effects import Failed
from ...dispatcher.gate import Gate
from ...dispatcher.intake import Item
from ...dispatcher.memory import Budget
from ...dispatcher.shard import OVER, Shard
from ...store.errors import StoreError
from ...store.position import Log
from ...store.task import MINUTE_MS
from ..profile import LEAD_MS_MAX, Change, Profile
from .accounts import Accounts, hashes_of
from .log import VirtualLog, What
from .rows import DIGEST, KEY, LIVE_OFFSET, QUEUE, RETRY, Rows
from .shelf import Shelf
from .stages import Stages

CHUNK = 2_000
SECOND_MS = 1_000
AHEAD = LEAD_MS_MAX // MINUTE_MS + 1
"""So many minutes before a bucket's own its commands begin to come."""
FAILED_UP_TO = 2
"""A later attempt than this is told to be done."""
HASHES = 1 << 32
ATTEMPT_AT = 3
"""The low byte of the attempt in a record."""
MEMBER = "played"
NOTHING = ("", 0)
TOPICS = Topics("virtual")


class Track:
    """One shard's part of the world: what lasts from one owner to the next."""

    def __init__(self, profile: Profile, shard: int) -> None:
        self.profile = profile
        self.rows = Rows(profile, shard)
        self.accounts = Accounts()
        self.logs = [VirtualLog(log, shard, 0 if log else LIVE_OFFSET) for log in Log]
        self.shelf = Shelf(self.rows, self.accounts, self.logs, profile)
        self._coming: dict[int, list[tuple[int, Change]]] = {}
        """second → (minute, change): what will be asked in it."""
        self._known_to = profile.span.start

    @property
    def shard(self) -> int:
        return self.rows.shard

    def ask(self, now_ms: int) -> None:
        """Write down what is asked for in the second that begins now."""
        minute = (now_ms - self.profile.midnight_ms) // MINUTE_MS
        while self._known_to <= minute + AHEAD and self._known_to in self.profile.span:
            self._expect(self._known_to)
            self._known_to += 1
        for of_minute, change in self._coming.pop(now_ms // SECOND_MS, ()):
            self._write(of_minute, change)

    def tell(self, now_ms: int, due: Due, kind: str) -> None:
        """Write down what became of an attempt."""
        if self.rows.made(due.filing):
            self.shelf.know(self.rows.task(due.filing, due.due_ms))
        self.logs[Log.OUTCOMES].append(now_ms, lambda _: _outcome(due, kind))

    def decode(self, log: Log, record: Record, _: int) -> list[Item]:
        return [self.logs[log].item(record)]

    def _expect(self, number: int) -> None:
        """Learn what will be asked of a minute's tasks, and know their rows until then."""
        minute = self.rows.first + number
        dues = self.rows.dues(minute)
        for change in self.profile.changes(self.shard, number, dues):
            self._coming.setdefault(change.at_ms // SECOND_MS, []).append((minute, change))
            if change.kind != "late":
                self.shelf.know(self.rows.task(self.rows.filing(minute, change.place), dues[change.place]))

    def _write(self, minute: int, change: Change) -> None:
        def command(position: int) -> What:
            at = Standing(Log.SUBMIT, position, change.at_ms)
            if change.kind == "late":
                key, payload = self.rows.late(minute, change.place)
                task = {"key": key, "digest": DIGEST, "queue": QUEUE, "payload": payload, "retry": RETRY}
                return Submit(at=at, due_ms=change.due_ms, **task)  # type: ignore[arg-type]
            key = self.rows.record(minute, change.place)[KEY].decode()
            if change.kind == "cancel":
                return Cancel(at=at, key=key)
            return Reschedule(at=at, key=key, due_ms=change.due_ms)

        self.logs[Log.SUBMIT].append(change.at_ms, command)


class Player:
    """One dispatcher over some shards, from `now_ms` on, in turns of `turn_ms`."""

    def __init__(self, tracks: Sequence[Track], now_ms: int, turn_ms: int, limits: Limits) -> None:
        self.now_ms = now_ms
        self.stages = Stages()
        self.late_ms: Counter[int] = Counter()
        self.fired = 0
        self._turn_ms = turn_ms
        self._gate = Gate()
        self._asked: list[tuple[Shard, Asked]] = []
        self._sent: list[Due] = []
        self._sent_ms = now_ms
        self._plant = NOTHING
        self._tracks = {track.shard: track for track in tracks}
        budget = Budget(1 << 40, 1 << 50)
        self.shards = {track.shard: self._reign(track, budget, limits) for track in tracks}

    def plant(self, fault: str, minute: int) -> None:
        """Do something wrong once in this minute (see `plants`)."""
        self._plant = fault, minute

    def play(self, until_ms: int) -> None:
        """Turn after turn, up to the first that does not lie before then."""
        while self.now_ms < until_ms:
            self._turn()
            self.now_ms = self._next_ms()

    def hand_over(self) -> None:
        """Let go of all shards, as on a restart."""
        for shard in self.shards.values():
            shard.drain()
        while any(shard.life not in OVER for shard in self.shards.values()):
            self._turn()
            self.now_ms += self._turn_ms

    def _reign(self, track: Track, budget: Budget, limits: Limits) -> Shard:
        shard = Shard(
            shard=track.shard,
            fence=track.shelf.progress.fence + 1,
            member=MEMBER,
            now_ms=self.now_ms,
            topics=TOPICS,
            decode=track.decode,
            budget=budget,
            limits=limits,
        )
        shard.clock_confirmed = True
        return shard

    def _next_ms(self) -> int:
        """The next turn in which something can happen."""
        now_ms, turn_ms = self.now_ms, self._turn_ms
        if self._asked or self._sent:
            return now_ms + turn_ms
        at_ms = min((at_ms for shard in self.shards.values() if (at_ms := shard.next_ms()) is not None), default=now_ms)
        second_ms = (now_ms // SECOND_MS + 1) * SECOND_MS
        turns = -(-(min(at_ms, second_ms) - now_ms) // turn_ms)
        return now_ms + max(1, turns) * turn_ms

    def _turn(self) -> None:
        stages = self.stages
        stages.begin()
        self._answer()
        self._land()
        if self.now_ms % SECOND_MS < self._turn_ms:
            self._ask()
        stages.end("commands")
        for shard in self.shards.values():
            if shard.life in OVER:
                continue
            self._wants(shard, shard.step(self.now_ms))
            stages.end("steps")
            while dues := shard.take_due(self.now_ms, CHUNK):
                stages.end("wheel")
                self._gate.offer(dues, self.now_ms)
                stages.end("gate")
            if self._plant == ("early", self.now_ms // MINUTE_MS):
                self._take_early(shard)
            stages.end("wheel")
        self._release()

    def _wants(self, shard: Shard, asked: Iterable[Asked]) -> None:
        for one in asked:
            self._asked.append((shard, one))

    def _answer(self) -> None:
        """What was asked of the store in the turn before."""
        asked, self._asked = self._asked, []
        for shard, one in asked:
            try:
                answer = self._tracks[shard.shard].shelf.answer(one.effect)
            except StoreError as error:
                answer = Failed(error)
            self.stages.end("store")
            self._wants(shard, shard.resume(one.activity, answer, self.now_ms))
            self.stages.end(one.activity)

    def _ask(self) -> None:
        """Once a second: what users ask for is written and read."""
        for number, track in self._tracks.items():
            track.ask(self.now_ms)
            for name, log in zip(Log, track.logs, strict=True):
                wanted = self.shards[number].wants(name)
                if wanted:
                    fetched = log.fetch(wanted.offset, wanted.limit)
                    if fetched.records:
                        self.shards[number].deliver(name, fetched)

    def _release(self) -> None:
        self._sent_ms = self.now_ms
        while dues := self._gate.release(self.now_ms, CHUNK):
            self.stages.end("gate")
            for number, some in by_shard(dues).items():
                self.shards[number].released(some)
            self._sent += dues
            self.stages.end("marks")
        self.stages.end("gate")

    def _land(self) -> None:
        """What was published in the turn before is acknowledged."""
        sent, self._sent = self._sent, []
        for number, dues in by_shard(sent).items():
            self.stages.end("marks")
            self._count(self._tracks[number], dues)
            self.stages.end("broker")
            self.shards[number].fired(dues, self.now_ms)
            self.stages.end("marks")
        self.fired += len(sent)

    def _count(self, track: Track, dues: list[Due]) -> None:
        """The broker's side: each key, its minute, how late; and of some what becomes of them."""
        minutes: dict[int, list[Due]] = {}
        for due in dues:
            minutes.setdefault(due.minute, []).append(due)
        for minute, some in minutes.items():
            keys = [due.record[KEY] for due in some]
            hashes = hashes_of(keys)
            early = sum([due.due_ms > self._sent_ms for due in some])
            retried = len(some) - [due.record[ATTEMPT_AT] for due in some].count(1)
            track.accounts.fired(minute, keys, hashes, early, retried)
            if self._plant == ("duplicate", minute):
                track.accounts.fired(minute, keys[:1], hashes[:1], 0, 0)
                self._plant = NOTHING
            self._tell(track, minute, some, hashes)
        self.late_ms.update([self.now_ms - due.due_ms for due in dues])

    def _take_early(self, shard: Shard) -> None:
        if dues := shard.take_due(self.now_ms + SECOND_MS, 1):
            self._gate.offer(dues, self.now_ms)
            self._plant = NOTHING

    def _tell(self, track: Track, minute: int, dues: list[Due], hashes: list[int]) -> None:
        profile = track.profile
        failed = int(profile.failed(minute - track.rows.first) * HASHES)
        told = failed + int(profile.mix.done * HASHES)
        for place in [place for place, number in enumerate(hashes) if number < told]:
            due = dues[place]
            fails = hashes[place] < failed and due.record[ATTEMPT_AT] <= FAILED_UP_TO
            track.tell(self.now_ms, due, "failed" if fails else "done")


def _outcome(due: Due, kind: str) -> Outcome:
    outcome = outcome_of_filing(kind, due.shard, due.minute, due.due_ms, due.filing, due.record, "told so")  # type: ignore[arg-type]
    origin, starts = outcome.origin or due.filing, due.record[ATTEMPT_AT]
    return replace(outcome, origin=origin, starts=starts, retryable=True)
