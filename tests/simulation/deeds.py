"""What does a dispatcher hand over to the world, and what comes of it?

A *deed* is one call to a real port: an effect of a shard, the publishing of some due tasks, or the reading of a log.
It is done at one moment (`do`) and answered at another (`tell`); between the two, before and after, anything may
happen. `spoil` puts a failure in the place of the answer, `parts` are what it is torn into.
"""

from collections.abc import Coroutine, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from minutewheel.broker.errors import BrokerError
from minutewheel.broker.wire import Message
from minutewheel.dispatcher import effects as ask
from minutewheel.dispatcher.activity import Asked
from minutewheel.dispatcher.publishing import Outgoing, landed
from minutewheel.dispatcher.shard import OVER, Shard
from minutewheel.store.errors import NotApplied, UnknownOutcome
from minutewheel.store.position import Log

if TYPE_CHECKING:
    from .member import Member

T = TypeVar("T")
WRITES = (ask.Claim, ask.Write, ask.Record, ask.PutClosing, ask.Drop, ask.Produce)
OF_BROKER = (ask.Produce, ask.ReadEnds, ask.ReadDue)


def drive(work: Coroutine[Any, Any, T]) -> T:
    """Run what never waits."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    work.close()
    raise AssertionError("it waited")


class Deed:
    """One call to a port, on behalf of one shard of one member."""

    writes = True
    of_broker = True

    def __init__(self, member: "Member", shard: Shard) -> None:
        self.member = member
        self.shard = shard
        self.done = False
        self.timely = True
        """Did it land before its member's lease can have gone to another?"""
        self.begun_ms = 0
        self.answer: Any = None

    def __str__(self) -> str:
        return f"{self.member.name}/{self.shard.shard}#{self.shard.fence} {self.name}"

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def wanted(self) -> bool:
        """Does anybody wait for it?"""
        return not self.member.dead and self.shard.life not in OVER

    def do(self) -> None:
        raise NotImplementedError

    def tell(self) -> None:
        raise NotImplementedError

    def spoil(self, *, unknown: bool) -> None:
        raise NotImplementedError

    def parts(self) -> list["Deed"]:
        return []

    def twin(self) -> "Deed":
        """The same once more, for what lands apart from its answer."""
        return copy(self)


class Asking(Deed):
    """An effect that an activity waits for."""

    def __init__(self, member: "Member", shard: Shard, asked: Asked) -> None:
        super().__init__(member, shard)
        self.activity = asked.activity
        self.effect = asked.effect
        self.writes = isinstance(asked.effect, WRITES)
        self.of_broker = isinstance(asked.effect, OF_BROKER)

    @property
    def name(self) -> str:
        return type(self.effect).__name__

    def __str__(self) -> str:
        return f"{super().__str__()} {detail(self.effect)}"

    def do(self) -> None:
        self.answer = drive(self.member.performer.perform(self.shard.shard, self.effect))
        self.done = True

    def tell(self) -> None:
        self.member.resume(self)

    def spoil(self, *, unknown: bool) -> None:
        if isinstance(self.effect, ask.Produce):
            self.answer = [BrokerError("simulated")] * len(self.effect.messages)
        elif self.of_broker:
            self.answer = ask.Failed(BrokerError("simulated"))
        else:
            self.answer = ask.Failed(UnknownOutcome("simulated") if unknown else NotApplied("simulated"))

    def parts(self) -> list[Deed]:
        """No batch of plain rows or messages is atomic."""
        if isinstance(self.effect, ask.Write):
            effects: Sequence[ask.Effect] = [ask.Write(self.effect.timestamp, (row,)) for row in self.effect.rows]
        elif isinstance(self.effect, ask.Produce):
            effects = [ask.Produce((message,)) for message in self.effect.messages]
        else:
            return []
        return [Asking(self.member, self.shard, Asked(self.activity, effect)) for effect in effects]


class Publishing(Deed):
    """Some due tasks on their way out."""

    def __init__(self, member: "Member", shard: Shard, sent: list[Outgoing]) -> None:
        super().__init__(member, shard)
        self.sent = sent

    def __str__(self) -> str:
        return f"{super().__str__()} {[short(out.due.filing) for out in self.sent]}"

    @property
    def wanted(self) -> bool:
        return not self.member.dead

    @property
    def messages(self) -> list[Message]:
        return [out.message for out in self.sent]

    def do(self) -> None:
        self.answer = drive(self.member.broker.produce(self.messages))
        self.done = True

    def tell(self) -> None:
        self.member.published(self, landed(self.sent, self.answer, self.member.topics))

    def spoil(self, *, unknown: bool) -> None:
        self.answer = [BrokerError("simulated")] * len(self.sent)

    def parts(self) -> list[Deed]:
        return [Publishing(self.member, self.shard, [out]) for out in self.sent]


class Reading(Deed):
    """A log of the shard, read on."""

    writes = False

    def __init__(self, member: "Member", shard: Shard, log: Log, offset: int, limit: int) -> None:
        super().__init__(member, shard)
        self.log = log
        self.offset = offset
        self.limit = limit

    def __str__(self) -> str:
        got = "" if not self.done else f" {len(self.answer.records)}"
        return f"{super().__str__()} {self.log.name}@{self.offset}{got}"

    def do(self) -> None:
        topic = self.member.topics.logs[self.log]
        self.answer = drive(self.member.broker.fetch(topic, self.shard.shard, self.offset, self.limit, 0))
        self.done = True

    def tell(self) -> None:
        self.member.read(self)

    def spoil(self, *, unknown: bool) -> None:
        self.answer = None


def short(filing: int) -> str:
    """A filing as a trace shows it: log, offset, index in a batch."""
    log = "sfo"[filing >> 61] if filing >= 0 else "-"
    index = f".{filing & 0x3FFF}" if filing & 0x3FFF else ""
    return f"{log}{filing >> 14 & ((1 << 40) - 1)}{index}"


def detail(effect: ask.Effect) -> str:
    """What a trace shows of an effect."""
    match effect:
        case ask.Write(timestamp, rows):
            return f"@{timestamp >> 32}.{timestamp & 0xFFFF} {[_row(row) for row in rows]}"
        case ask.Record(_, checkpoint):
            marks = {
                n.minute % 1000: [short(f) + "+" for f in n.fired] + [short(f) + "-" for f in n.removed]
                for n in checkpoint.marks
            }
            offsets = [position >> 14 & 0xFFFF for position in checkpoint.offsets]
            closed = [minute % 1000 for minute in checkpoint.closed]
            number = checkpoint.number & 0xFFFF
            return f"{number} offsets {offsets} open {checkpoint.open_minute % 1000} marks {marks} closed {closed}"
        case ask.LookUp(keys):
            return str(list(keys))
        case ask.ReadPage(minute, piece, _, _):
            return f"{minute % 1000}.{piece}"
        case ask.ReadMarks(minute) | ask.Drop(minute, _, _):
            return str(minute % 1000)
        case ask.Produce(messages):
            return str([message.topic.rpartition(".")[2] for message in messages])
    return ""


def _row(row: Any) -> str:
    name = type(row).__name__
    if name == "BucketRow":
        return f"bucket {row.minute % 1000}/{short(row.filing)}"
    if name == "TaskRow":
        return f"task {row.key} {short(row.filing)} {row.minute % 1000} {row.state} {row.answer}"
    return f"letter {row.key}"
