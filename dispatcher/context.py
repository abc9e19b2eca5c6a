"""What do the activities of one shard share, and within which limits do they work?"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from ..broker.wire import Message, Topics
from ..store.position import log_of, position_of
from ..store.progress import Offsets
from ..store.task import TaskRow
from .activity import Activities, Steps, Until
from .intake import Intake, Item
from .journal import Journal
from .memory import Memory
from .recent import Recent

CLOCKS_APART_MS = 1_000
"""How far a predecessor's clock may have been ahead of mine: each is within half of this of the broker's."""


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds of one shard's work; each is a setting of the same name (see docs/configuration.md)."""

    batch_max: int = 2_000
    read_ahead: int = 20_000
    page_rows: int = 5_000
    piece_rows_max: int = 200_000
    piece_bytes_max: int = 64 << 20
    lead_ms: int = 30_000
    checkpoint_ms: int = 250
    checkpoint_relaxed_ms: int = 1_000
    checkpoint_ms_max: int = 2_000
    unrecorded_max: int = 200_000
    unrecorded_ms_max: int = 30_000
    close_after_ms: int = 2_000
    close_look_ms: int = 500
    closes_max: int = 60


class Counts(Struct):
    """What has happened in this shard, in whole numbers that only grow."""

    applied: int = 0
    fired: int = 0
    remainders: int = 0
    checkpoints: int = 0
    closed: int = 0
    refused: int = 0
    unpublishable: int = 0


class Untold(Struct, frozen=True, gc=False):
    """A batch that is written and not told yet. `answers`: are there receipts among its messages?"""

    items: Sequence[Item]
    messages: Sequence[Message]
    answers: bool


class Context:
    """The common ground of a shard's activities. `lose` gives the shard up, with the reason."""

    def __init__(
        self,
        *,
        shard: int,
        fence: int,
        member: str,
        topics: Topics,
        limits: Limits,
        activities: Activities,
        intake: Intake,
        journal: Journal,
        memory: Memory,
        lose: Callable[[str], None],
    ) -> None:
        self.shard = shard
        self.fence = fence
        self.member = member
        self.topics = topics
        self.limits = limits
        self.activities = activities
        self.intake = intake
        self.journal = journal
        self.memory = memory
        self.lose = lose
        self.counts = Counts()
        self.recent = Recent()
        self.taking = True
        self.closing_allowed = False
        self.applying = False
        self.untold: list[Untold] = []
        self.telling = False
        self.recorded_ms = self.began_ms = activities.now_ms
        self.pause = self.relaxed = range(0)
        """The time in which nothing is recorded, and that in which only what is waited for is (see `checkpointer`)."""
        self.stood: Offsets = (0, 0, 0)
        """How far the logs went when the reign began, if another had reigned before."""
        self._filing: dict[int, int] = {}

    @property
    def now_ms(self) -> int:
        return self.activities.now_ms

    def checkpointed(self) -> Steps[None]:
        """Wait until a checkpoint that begins from now on has succeeded."""
        journal = self.journal
        journal.wanted = True
        number = journal.started + 1
        yield Until(lambda: journal.succeeded >= number)

    def recording_soon(self, within_ms: int = 0) -> bool:
        """Is what is new recorded within this time? A clock that is set back ends all waiting."""
        span = self.pause if self.journal.wanted else self.relaxed
        return self.now_ms not in range(span.start, span.stop - within_ms)

    def doubtful(self, row: TaskRow) -> bool:
        """May the row's filing, not marked, have gone out all the same?

        An owner before me may have published what was due when I came, and not lived to mark it; the broker may have
        taken what it never acknowledged. It goes out again, and nobody can promise any more that it will not have run.
        """
        stood = position_of(row.filing) < self.stood[log_of(row.filing)]
        held = self.memory.held.get(row.filing)
        return (stood and row.due_ms < self.began_ms + CLOCKS_APART_MS) or (held is not None and held.doubtful)

    def begin_filing(self, minute: int) -> None:
        """A filing is being written into this minute: it may not close."""
        self._filing[minute] = self._filing.get(minute, 0) + 1

    def filed(self, minute: int) -> None:
        self._filing[minute] -= 1
        if not self._filing[minute]:
            del self._filing[minute]

    def quiet(self, minute: int) -> bool:
        """Nothing of the minute is in memory, in flight or being filed, and all of it has been read."""
        return not self.memory.count(minute) and minute not in self._filing and self.memory.loaded(minute)
