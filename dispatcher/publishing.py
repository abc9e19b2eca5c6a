"""What is published for a task that was let go, and what became of it?

Pure. A task whose start deadline has passed, or that the broker can never take, is not published: an outcome of its
filing says so, produced to the shard's own log (only the applier writes task rows). A queue that is declared with
`outcomes: none` gets a second message after the first is acknowledged, which settles the task. A filing is marked
only when the last of its messages is acknowledged (rule B).
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from ..broker.due import due_message
from ..broker.errors import BrokerError, Unpublishable
from ..broker.outcome import OutcomeKind, outcome_message, outcome_of_filing
from ..broker.port import Produced
from ..broker.wire import Message, Topics
from ..store.record import expires_of
from .due import Due


class Outgoing(Struct, gc=False, eq=False):
    """A filing on its way out, and the message that is to be acknowledged next."""

    due: Due
    message: Message
    settles: bool


class Landed(Struct, gc=False, eq=False):
    """What became of some that were produced: `fired` may be marked, `next` is to be produced, `back` was not taken."""

    fired: list[Due]
    next: list[Outgoing]
    back: list[Due]


def outgoing(dues: Iterable[Due], now_ms: int, topics: Topics, silent: Collection[str]) -> list[Outgoing]:
    """The first message of each; `silent` are the queues that are declared with `outcomes: none`."""
    return [_outgoing(due, now_ms, topics, silent) for due in dues]


def landed(sent: Sequence[Outgoing], answers: Sequence[Produced | BrokerError], topics: Topics) -> Landed:
    """Sort what was produced by what the broker said."""
    result = Landed([], [], [])
    for out, answer in zip(sent, answers, strict=True):
        if isinstance(answer, Produced):
            if out.settles:
                result.fired.append(out.due)
            else:
                result.next.append(_instead(out.due, topics, "done", ""))
        elif isinstance(answer, Unpublishable) and not _is_outcome(out, topics):
            result.next.append(_instead(out.due, topics, "unpublishable", f"{answer.reason}: {answer}"))
        else:
            result.back.append(out.due)
    return result


def _outgoing(due: Due, now_ms: int, topics: Topics, silent: Collection[str]) -> Outgoing:
    expires_ms = expires_of(due.record)
    if expires_ms and expires_ms < now_ms:
        return _instead(due, topics, "expired", "its start deadline had passed when it came to its turn")
    message = due_message(topics, due.shard, due.minute, due.due_ms, due.filing, due.record)
    return Outgoing(due, message, not (silent and due.queue in silent))


def _instead(due: Due, topics: Topics, kind: OutcomeKind, reason: str) -> Outgoing:
    outcome = outcome_of_filing(kind, due.shard, due.minute, due.due_ms, due.filing, due.record, reason)
    return Outgoing(due, outcome_message(topics, outcome), settles=True)


def _is_outcome(out: Outgoing, topics: Topics) -> bool:
    return out.message.topic == topics.outcomes
