"""What happens in exactly this order of steps? A host on which nothing happens but what a script says.

Time stands still between two steps. A member that runs does its deeds one after the other, in the order in which it
asked for them, until it has none left or comes to one at which the script stops it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from minutewheel.broker.compose import Composer, Submission
from minutewheel.broker.due import Delivered, parse_due
from minutewheel.broker.outcome import OutcomeKind, outcome_message, outcome_of
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Produced
from minutewheel.broker.receipt import Receipt, decode_receipt
from minutewheel.broker.wire import Message, Record
from minutewheel.dispatcher import effects as ask
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.shard import Shard
from minutewheel.store.port import Granted
from minutewheel.store.position import Log
from minutewheel.store.progress import Progress
from minutewheel.store.record import Retry
from minutewheel.store.task import BucketRow, PlainRow, TaskRow
from msgspec.structs import replace

from .deeds import Asking, Deed, drive
from .ground import START_MS, Ground
from .member import Member
from .workers import Workers

SHARD, OTHER = 7, 8
SLICE_MS = 125
FOR_EVER = 1 << 60
Match = Callable[[Deed], bool]


def named(name: str) -> Match:
    return lambda deed: deed.name == name


def writes(kind: type) -> Match:
    """A write that puts such rows."""
    return lambda deed: (
        isinstance(deed, Asking)
        and isinstance(deed.effect, ask.Write)
        and any(isinstance(row, kind) for row in deed.effect.rows)
    )


ROW, BUCKET, RECORD, RECEIPT, PUBLISH = (
    writes(TaskRow),
    writes(BucketRow),
    named("Record"),
    named("Produce"),
    named("Publishing"),
)


class NeverCame(Exception):
    """The script is wrong: a member never came to the deed at which it was to be stopped."""


class Stage:
    """One scripted history of the shard `SHARD`."""

    def __init__(self, limits: Limits | None = None, *, tasks_max: int = 1_000) -> None:
        self.now_ms = START_MS
        self.published: list[Delivered] = []
        self.published_ms: list[int] = []
        self.receipts: list[Receipt] = []
        self.unread: set[Log] = set()
        """Logs that no member reads for now."""
        self.ground = Ground(lambda: self.now_ms, self, 10_000)
        self.limits = limits or Limits()
        self._tasks_max = tasks_max
        self._composer = Composer(self.ground.topics)
        self._pending: dict[str, list[Deed]] = {}
        self._later: list[tuple[int, Member, Callable[..., None], tuple[Any, ...]]] = []
        self._ends: dict[tuple[str, int], int] = {}
        self._names = self._marks = 0

    # Members.

    def owner(self, number: int = SHARD) -> Member:
        """A new member that gets the shard. Who had it before believes on in its lease."""
        if self.ground.holder(number) is not None:
            self.ground.coordinator._ground.note_owner(number, None)
        self._names += 1
        member = self.ground.member(self, f"m{self._names}", self.limits, self._tasks_max, 50)
        member.slack_until_ms = self.now_ms + FOR_EVER
        self._pending[member.name] = []
        assert member.take(number)
        return member

    def crash(self, *members: Member) -> None:
        for member in members:
            member.dead = True
            self._pending[member.name].clear()

    def run(self, member: Member, until: Match | None = None) -> Deed | None:
        """Let it do all that it can do now. Stop at a deed, which is handed over undone."""
        pending = self._pending[member.name]
        while not member.dead:
            member.turn()
            if not pending:
                return None
            while pending:
                deed = pending.pop(0)
                if not deed.wanted:
                    continue
                if until and until(deed):
                    return deed
                deed.do()
                deed.tell()
        return None

    def pass_time(self, pause_ms: int, *members: Member, until: Match | None = None) -> Deed | None:
        """Let time go by while these run, or until the first of them comes to a deed."""
        end_ms = self.now_ms + pause_ms
        while True:
            for member in members:
                if (deed := self.run(member, until)) is not None:
                    return deed
            if self.now_ms >= end_ms:
                if until is not None:
                    raise NeverCame
                return None
            self.now_ms = min(end_ms, self.now_ms + SLICE_MS)
            self._do_later()

    def come_to(self, member: Member, what: Match, within_ms: int = 5_000) -> Deed:
        deed = self.pass_time(within_ms, member, until=what)
        assert deed is not None
        return deed

    # Users and workers.

    def submit(self, name: str, due_ms: int, *, through: int | None = None, **more: Any) -> str:
        """A task, due so long after the beginning, maybe through another's partition; the mark of its receipts."""
        retry = Retry(base_ms=1_000, factor=1.0, cap_ms=1_000)
        more = {"queue": "mail", "payload": b"1", "retry": retry, **more}
        mark = self._mark()
        submission = Submission(id=_id(name), tenant="t", due=START_MS + due_ms, receipt=mark, **more)
        message = self._composer.submit(submission)
        self._produce(message if through is None else replace(message, partition=through))
        return mark

    def ask(self, op: str, name: str, *, due_ms: int | None = None, through: int | None = None) -> str:
        """`cancel`, `reschedule`, `redrive` or `discard`, maybe through another shard's partition."""
        mark = self._mark()
        more = {} if due_ms is None else {"due": START_MS + due_ms}
        message = getattr(self._composer, op)("t", _id(name), receipt=mark, **more)
        self._produce(message if through is None else replace(message, partition=through))
        return mark

    def end(self, name: str, kind: OutcomeKind, *, retryable: bool = True) -> None:
        """A worker says so of the last delivery, without the ledger."""
        delivered = self.deliveries(name)[-1]
        starts = delivered.task.starts + 1
        outcome = outcome_of(delivered, kind, starts=starts, reason=kind, retryable=retryable)
        self._produce(outcome_message(self.ground.topics, outcome))

    def work(self, name: str, kind: OutcomeKind) -> bool:
        """A worker takes the last delivery, if the ledger lets it."""
        delivered = self.deliveries(name)[-1]
        place = (delivered.queue, delivered.shard, delivered.minute)
        number = Workers.number(self, delivered)  # type: ignore[arg-type]
        (answer,) = drive(self.ground.ledger.claim(place, [number], "w", self.now_ms, self.now_ms + 30_000))
        if not isinstance(answer, Granted):
            return False
        self.end(name, kind)
        drive(self.ground.ledger.finish(place, [number]))
        return True

    # What is seen.

    def deliveries(self, name: str) -> list[Delivered]:
        return [delivered for delivered in self.published if delivered.id == _id(name)]

    def runs(self, name: str) -> int:
        """How many filings of a task went out."""
        return len({delivered.filing for delivered in self.deliveries(name)})

    def answers(self, mark: str) -> set[str]:
        """What a command was told; outcomes have their own."""
        return {receipt.answer for receipt in self.receipts if receipt.receipt == mark and receipt.op != "outcome"}

    def row(self, name: str) -> TaskRow:
        (row,) = drive(self.ground.bare_store.tasks(SHARD, [f"t/{_id(name)}"]))
        return row

    def letters(self, name: str) -> int:
        return len(drive(self.ground.bare_store.letters(SHARD, [f"t/{_id(name)}"])))

    # The watcher.

    def wrote(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None: ...

    def progressed(self, shard: int, fence: int, before: Progress, after: Progress) -> None: ...

    def stands(self, message: Message, produced: Produced) -> None:
        topics = self.ground.topics
        self._ends[message.topic, produced.partition] = produced.offset + 1
        record = Record(
            message.topic, produced.partition, produced.offset, self.now_ms, message.key, message.value, message.headers
        )
        if message.topic == topics.receipts:
            self.receipts.append(decode_receipt(record))
        elif message.topic not in topics.fixed:
            self.published.append(parse_due(record))
            self.published_ms.append(self.now_ms)

    # The host.

    def hand(self, deed: Deed) -> None:
        self._pending[deed.member.name].append(deed)

    def wake(self, member: Member) -> None: ...

    def after(self, pause_ms: int, member: Member, work: Callable[..., None], *args: Any) -> None:
        self._later.append((self.now_ms + pause_ms, member, work, args))

    def turned(self, member: Member) -> None: ...

    def taken(self, member: Member, shard: Shard) -> None: ...

    def due_taken(self, member: Member, dues: list[Due], now_ms: int) -> None: ...

    def behind(self, member: Member, shard: Shard, log: Log, offset: int) -> bool:
        return log not in self.unread and self._ends.get((self.ground.topics.logs[log], shard.shard), 0) > offset

    def _do_later(self) -> None:
        ripe = [one for one in self._later if one[0] <= self.now_ms]
        self._later = [one for one in self._later if one[0] > self.now_ms]
        for _, member, work, args in ripe:
            if not member.dead:
                work(*args)

    def _mark(self) -> str:
        self._marks += 1
        return f"r{self._marks}"

    def _produce(self, message: Message) -> None:
        drive(self.ground.broker.produce([message]))


def _id(name: str) -> str:
    """An id of the shard that begins with the name."""
    n = 0
    while shard_of(f"t/{name}{n}") != SHARD:
        n += 1
    return f"{name}{n}"
