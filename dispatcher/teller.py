"""What is told of a batch that is written, and when may it be told?

Receipts, refusals, dead letters, and what belongs to other shards. A receipt goes out only after a checkpoint that
began after the rows of its batch were written (rule P): so the shard was mine when they were, and whoever came after
me has read them. An owner that is none any more would else give answers that its successor, who never saw its rows,
contradicts. Then the records count as applied (rule O), and the next commands of their keys get their turn (rule U).
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..broker.command import Cancel, Command, Discard, Redrive, Rejection, Reschedule, Standing, Submit
from ..broker.dead import dead_message
from ..broker.errors import BrokerError, Unpublishable
from ..broker.outcome import Outcome
from ..broker.receipt import Op, Receipt, receipt_message
from ..broker.rejection import rejection_message
from ..broker.wire import Message
from .activity import Steps, Until, insist
from .context import Context, Untold
from .decision import Decision
from .effects import Produce
from .intake import Item

_OPS: dict[type, Op] = {
    Submit: "submit",
    Cancel: "cancel",
    Reschedule: "reschedule",
    Redrive: "redrive",
    Discard: "discard",
    Outcome: "outcome",
}


def hand_over(context: Context, batch: Sequence[Item], decided: Sequence[Decision]) -> None:
    """A batch is written. Without anything to tell it is applied with that."""
    messages = _messages(context, batch, decided)
    if messages:
        context.untold.append(Untold(batch, messages, any(map(_answers, decided))))
    else:
        _applied(context, batch)


def telling(context: Context) -> Steps[None]:
    """The activity: tell what was written since the last time, in its order."""
    while True:
        yield Until(lambda: bool(context.untold))
        untold, context.untold = context.untold, []
        context.telling = True
        if any(one.answers for one in untold):
            yield from context.checkpointed()
        yield from _produce(context, [message for one in untold for message in one.messages])
        for one in untold:
            _applied(context, one.items)
        context.telling = False


def _applied(context: Context, items: Sequence[Item]) -> None:
    context.intake.done(items)
    context.counts.applied += len(items)


def _answers(decision: Decision) -> bool:
    return bool(decision.answer) and decision.receipt is not None


def _messages(context: Context, batch: Iterable[Item], decided: Iterable[Decision]) -> list[Message]:
    """What is to be produced for a batch: refusals, what belongs to other shards, dead letters, receipts."""
    topics = context.topics
    messages = []
    for item in batch:
        if isinstance(item.what, Rejection):
            messages.append(rejection_message(topics, item.record, item.what))
        elif isinstance(item.what, Message):
            messages.append(item.what)
    for decision in decided:
        if decision.letter:
            messages.append(dead_message(topics, decision.letter))
        if _answers(decision):
            messages.append(receipt_message(topics, context.shard, _receipt(decision)))
    return messages


def _receipt(decision: Decision) -> Receipt:
    """What is told of a decision; the row is the one that stands, or will."""
    item, row = decision.item, decision.row
    assert decision.answer
    assert decision.receipt is not None
    what = item.what
    receipt = Receipt(
        op=_OPS[type(what)],
        key=item.key,
        answer=decision.answer,
        receipt=decision.receipt,
        at=what.at if isinstance(what, Command) else Standing(item.log, item.position, item.time_ms),
    )
    if row is None:
        return receipt
    return replace(
        receipt, state=row.state, filing=row.filing, due_ms=row.due_ms, attempt=row.attempt, note=row.note[-500:]
    )


def _produce(context: Context, messages: Sequence[Message]) -> Steps[None]:
    """Produce until each is acknowledged. What can never be published is counted and let go."""
    while messages:
        answers = yield from insist(context.activities, Produce(messages))
        failed = [
            (message, answer)
            for message, answer in zip(messages, answers, strict=True)
            if isinstance(answer, BrokerError)
        ]
        context.counts.unpublishable += sum(isinstance(answer, Unpublishable) for _, answer in failed)
        messages = [message for message, answer in failed if not isinstance(answer, Unpublishable)]
        if messages:
            yield Until(at_ms=context.activities.now_ms + 100)
