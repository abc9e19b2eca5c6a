"""When is progress recorded, and what if nobody knows whether it was?

Every second if there is something to record, every 250 ms while a receipt or a decision waits for that, more slowly
when the store is slow, at once when the shard is handed over: one conditional write a shard, however many tasks it
fires. What nobody waits for is recorded only so that less is repeated after a crash. Refused: the shard is another's,
and dropped at once (rule F). Unknown: a serial read tells whether the fence still stands and whether the checkpoint is
there; if not, the same one is written again.
"""

from ..store.errors import NotApplied
from ..store.progress import Checkpoint, Progress
from .activity import RETRY_CAP_MS, RETRY_FIRST_MS, Steps, Until, insist
from .context import Context
from .effects import Failed, ReadProgress, Record


def checkpointing(context: Context) -> Steps[None]:
    """The activity: checkpoint after checkpoint."""
    journal, limits = context.journal, context.limits
    while True:
        at_ms = context.pause.stop if context.taking else 0
        yield Until(lambda: _needed(context), at_ms=at_ms, wake_ms=context.relaxed.stop)
        began_ms = context.now_ms
        checkpoint = journal.build([minute for minute in journal.proven() if context.quiet(minute)])
        if not (yield from _record(context, checkpoint)):
            context.counts.refused += 1
            context.lose("fence refused")
            return
        journal.recorded(checkpoint)
        context.recorded_ms = began_ms
        context.counts.checkpoints += 1
        context.counts.closed += len(checkpoint.closed)
        pause_ms = min(max(limits.checkpoint_ms, 2 * (context.now_ms - began_ms)), limits.checkpoint_ms_max)
        since_ms = min(began_ms, context.now_ms)
        context.pause = range(since_ms, since_ms + pause_ms)
        context.relaxed = range(since_ms, since_ms + max(pause_ms, limits.checkpoint_relaxed_ms))


def _needed(context: Context) -> bool:
    """Is there something to record, and has it waited long enough?"""
    return (not context.taking or context.recording_soon()) and context.journal.dirty()


def _record(context: Context, checkpoint: Checkpoint) -> Steps[bool]:
    """Write it until it is certainly there, or certainly refused."""
    delay_ms = RETRY_FIRST_MS
    while True:
        answer = yield Record(context.fence, checkpoint)
        if not isinstance(answer, Failed):
            return bool(answer)
        yield Until(at_ms=context.now_ms + delay_ms)
        delay_ms = min(2 * delay_ms, RETRY_CAP_MS)
        if isinstance(answer.error, NotApplied):
            continue
        stored: Progress = yield from insist(context.activities, ReadProgress())
        if (stored.fence, stored.member) != (context.fence, context.member):
            return False
        if stored.last_checkpoint == checkpoint.number:
            return True
