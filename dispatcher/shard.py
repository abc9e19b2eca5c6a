"""How does the owner of one shard work? What comes in, what it asks for, what it lets go: without a clock, without I/O.

A `Shard` is one reign: from the claim of the shard under a fence until it is handed over or lost. It is told what
happens (an answer came, records were delivered, tasks were published, time passed) and returns the effects that are
to be performed. Five activities share its memory, each a straight text of its own:

    applier       commands and outcomes become rows                  reads `intake`
    teller        what became of them is told                        ends what `intake` holds
    loader        rows come into memory before they are due          fills `memory`
    closer        minutes that are over are proven empty and dropped  empties the store
    checkpointer  what was done is recorded under the fence          writes `journal`

The sixth thing, firing, is no activity, for it must not wait for any: `take_due` hands over what is due to the gate,
`released` and `fired` tell what became of it.

The life of a reign is the table `TRANSITIONS`; whatever is not in it is refused.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from ..broker.port import Fetched
from ..broker.wire import Topics
from ..store.errors import ClaimRefused
from ..store.position import Log, unpack_position
from ..store.progress import Offsets, Progress
from ..store.task import minute_of
from .activity import Activities, Asked, Steps, Until, insist
from .applier import applying
from .checkpointer import checkpointing
from .closer import closing
from .context import Context, Limits
from .due import Due
from .effects import Claim, Failed, ReadEnds
from .intake import Decode, Intake
from .journal import Journal
from .loader import loading
from .memory import Budget, Memory
from .teller import telling


class Life(StrEnum):
    """Where a reign stands."""

    CLAIMING = "claiming"
    CATCHING_UP = "catching up"
    SERVING = "serving"
    DRAINING = "draining"
    RELEASED = "released"
    LOST = "lost"


TRANSITIONS: dict[tuple[Life, str], Life] = {
    (Life.CLAIMING, "claimed"): Life.CATCHING_UP,
    (Life.CLAIMING, "lose"): Life.LOST,
    (Life.CLAIMING, "drain"): Life.RELEASED,
    (Life.CATCHING_UP, "caught up"): Life.SERVING,
    (Life.CATCHING_UP, "drain"): Life.DRAINING,
    (Life.CATCHING_UP, "lose"): Life.LOST,
    (Life.SERVING, "drain"): Life.DRAINING,
    (Life.SERVING, "lose"): Life.LOST,
    (Life.DRAINING, "drained"): Life.RELEASED,
    (Life.DRAINING, "lose"): Life.LOST,
}
FIRES = frozenset({Life.CATCHING_UP, Life.SERVING})
OVER = frozenset({Life.RELEASED, Life.LOST})
LEAVING = OVER | {Life.DRAINING}
BLOCKED_MS = 50
"""How soon to look again whether the store takes checkpoints, when too much is unrecorded to go on firing."""
MARKS_AHEAD = 2
"""Minutes beyond the present one whose marks come with the claim: no clock of a predecessor was further ahead."""


class Wanted(Struct, frozen=True, gc=False):
    """Read a log on from here, so many records at the most. Another incarnation of the topic has no such place."""

    offset: int
    limit: int
    incarnation: int


class Shard:
    """One reign over one shard."""

    def __init__(
        self,
        *,
        shard: int,
        fence: int,
        member: str,
        now_ms: int,
        topics: Topics,
        decode: Decode,
        budget: Budget,
        limits: Limits,
    ) -> None:
        self.shard = shard
        self.fence = fence
        self.member = member
        self.life = Life.CLAIMING
        self.reason = ""
        self.stored_fence = 0
        self.clock_confirmed = False
        self._blocked_ms = 0
        self._topics = topics
        self._decode = decode
        self._budget = budget
        self._limits = limits
        self._context: Context | None = None
        self._ends: Offsets | None = None
        self._activities = Activities()
        self._activities.now_ms = now_ms
        self._activities.start("claim", self._claiming())

    @property
    def context(self) -> Context:
        assert self._context is not None, "the shard is not claimed yet"
        return self._context

    @property
    def claimed(self) -> bool:
        return self._context is not None

    # What happens.

    def step(self, now_ms: int) -> list[Asked]:
        """Time has passed, or something was told."""
        if self.life in OVER:
            return []
        if self._context:
            self._look_around(self._context)
        return self._activities.step(now_ms)

    def resume(self, activity: str, answer: object, now_ms: int) -> list[Asked]:
        """The answer to an effect that this activity asked for; `Failed` if it raised."""
        if self.life in OVER:
            return []
        asked = self._activities.resume(activity, answer, now_ms)
        if self._context and self.life not in OVER:
            self._look_around(self._context)
        return asked

    def deliver(self, log: Log, fetched: Fetched) -> None:
        """A log was read on. The position must be that of `wants`."""
        if self._context and self.life not in OVER:
            self._context.intake.deliver(log, fetched)

    def drain(self) -> None:
        """Hand the shard over: take nothing more, finish what is under way, record it."""
        if self.life in LEAVING:
            return
        self._move("drain")
        if self._context:
            self._context.taking = False
            self._activities.stop("claim", "load", "close")
            self._activities.hasten("checkpoint")
            self._context.memory.withhold()

    def lose(self, reason: str) -> None:
        """The shard is not ours any more, or may not be: nothing of it is written or released from now on."""
        if self.life in OVER:
            return
        self.reason = reason
        self._move("lose")
        self._activities.stop("claim", "apply", "tell", "load", "close", "checkpoint")
        if self._context:
            self._context.memory.abandon()

    # Intake.

    def wants(self, log: Log) -> Wanted | None:
        """Where to read a log on, or None while there is no room or nothing is to be taken."""
        if self._context is None or self.life not in FIRES:
            return None
        intake = self._context.intake
        room = intake.room(log)
        at = unpack_position(intake.readers[log].next_position)
        return Wanted(at.offset, room, at.incarnation) if room else None

    # Firing.

    def take_due(self, now_ms: int, limit: int) -> list[Due]:
        """What is due, for the gate; nothing while too much is unrecorded."""
        if self.life not in FIRES:
            return []
        if not self._may_fire(now_ms):
            self._blocked_ms = now_ms + BLOCKED_MS
            return []
        self._blocked_ms = 0  # Of a clock that was set back since, it would be long in coming.
        return self.context.memory.take_due(now_ms, limit)

    def released(self, dues: Iterable[Due]) -> None:
        """The gate let these go; they are about to be published."""
        self.context.memory.release(dues)

    def put_back(self, dues: Iterable[Due]) -> None:
        """They were not published; the caller offers those to the gate again that are live."""
        if self.life not in OVER:
            self.context.memory.put_back(dues, hold=self.life in FIRES)

    def fired(self, dues: list[Due], now_ms: int) -> None:
        """They are published and acknowledged (rule B: only now are they marked)."""
        if self.life in OVER:
            return
        context = self.context
        journal = context.journal
        if not journal.unrecorded:
            context.recorded_ms = now_ms
        context.memory.fired(dues)
        context.counts.fired += len(dues)
        # Before so many are unrecorded that firing would stop.
        if 2 * (journal.unrecorded + len(dues)) >= self._limits.unrecorded_max:
            journal.wanted = True
        minutes: dict[int, list[Due]] = {}
        for due in dues:
            minutes.setdefault(due.minute, []).append(due)
        for minute, some in minutes.items():
            journal.mark(minute, [due.filing for due in some], "fired")
            journal.count_late(minute, sum(now_ms - due.due_ms > 1_000 for due in some))

    # Time.

    def next_ms(self) -> int | None:
        """When to call `step` and `take_due` although nothing happens till then."""
        if self.life in OVER:
            return None
        times = [self._activities.next_ms()]
        if self.life in FIRES and (due_ms := self.context.memory.wheel.next_ms()) is not None:
            times.append(max(due_ms, self._blocked_ms))
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def _may_fire(self, now_ms: int) -> bool:
        journal, limits = self.context.journal, self._limits
        if not journal.unrecorded:
            return True
        return (
            journal.unrecorded < limits.unrecorded_max and now_ms - self.context.recorded_ms < limits.unrecorded_ms_max
        )

    def _move(self, what: str) -> None:
        self.life = TRANSITIONS[self.life, what]

    def _look_around(self, context: Context) -> None:
        """Conditions that no activity waits for."""
        if self.life is Life.CATCHING_UP and self._ends and context.intake.reached(self._ends):
            self._move("caught up")
        context.closing_allowed = self.life is Life.SERVING and self.clock_confirmed
        if self.life is Life.DRAINING and self._drained(context):
            self._move("drained")
            self._activities.stop("apply", "tell", "checkpoint")
            context.memory.abandon()

    @staticmethod
    def _drained(context: Context) -> bool:
        journal = context.journal
        idle = not (context.memory.firing or context.applying or context.untold or context.telling)
        return idle and not journal.dirty() and journal.started == journal.succeeded

    def _claiming(self) -> Steps[None]:
        """Claim the shard and start to fire; then see how far its logs go, and start what decides by that."""
        now_ms = self._activities.now_ms
        claim = Claim(self.fence, self.member, minute_of(now_ms) + MARKS_AHEAD)
        while True:
            answer = yield claim
            if not isinstance(answer, Failed):
                break
            if isinstance(answer.error, ClaimRefused):
                self.stored_fence = answer.error.stored
                self.lose("claim refused")
                return
            yield Until(at_ms=self._activities.now_ms + 100)
        self._context = context = self._begin(answer)
        self._move("claimed")
        self._activities.start("load", loading(context, claim.marks_up_to))
        self._activities.start("checkpoint", checkpointing(context))
        self._ends = yield from insist(self._activities, ReadEnds())
        if context.journal.follows:
            context.stood = self._ends
        self._activities.start("apply", applying(context))
        self._activities.start("tell", telling(context))
        self._activities.start("close", closing(context))

    def _begin(self, progress: Progress) -> Context:
        """Memory and journal of a new reign. Overdue minutes count as forgotten: what is due now is loaded first."""
        now_ms = self._activities.now_ms
        intake = Intake(progress.offsets, self._decode, self._limits.read_ahead)
        journal = Journal(progress, self.fence, intake)
        present = max(minute_of(now_ms), progress.open_minute)
        memory = Memory(self.shard, now_ms, present - 1, self._budget)
        for minute in range(progress.open_minute, present):
            if not journal.shut(minute):
                memory.forget(minute, (-1, -1))
        return Context(
            shard=self.shard,
            fence=self.fence,
            member=self.member,
            topics=self._topics,
            limits=self._limits,
            activities=self._activities,
            intake=intake,
            journal=journal,
            memory=memory,
            lose=self.lose,
        )
