"""When is a minute over for good, and how is that proven?

Once it is past, nothing of it is in memory, in flight or being filed, and all that filed or marked in it is applied
(rule Y), its rows are read once more. If each that counts is marked, the minute is proven and closes with the next
checkpoint; then its closing record is kept and its bucket dropped. If one is not, that is a remainder: it is taken
into memory and fires, and it is counted, for in a system without faults there is none (rule C). Nothing closes before
the logs are applied up to their ends as seen at the claim (rule Q), nor while the clock is not confirmed.
"""

from ..store.progress import Closing
from ..store.task import MINUTE_MS, BucketRow
from .activity import Steps, Until, insist
from .context import Context
from .effects import Drop, PutClosing
from .loader import read_page


def closing(context: Context) -> Steps[None]:
    """The activity: look twice a second for minutes to close, close them, and drop what is closed."""
    journal, limits = context.journal, context.limits
    while True:
        yield Until(lambda: context.closing_allowed, at_ms=context.now_ms + limits.close_look_ms)
        minutes = _candidates(context)
        for minute in minutes:
            yield from _prove(context, minute)
        if len(minutes) == limits.closes_max:
            journal.wanted = True  # more of them wait
        yield Until(lambda minutes=minutes: all(journal.settled(minute) for minute in minutes))  # type: ignore[misc]
        yield from _put_away(context)


def _candidates(context: Context) -> list[int]:
    """The lowest minutes that may be proven now."""
    journal = context.journal
    past = (context.now_ms - context.limits.close_after_ms) // MINUTE_MS
    found: list[int] = []
    for minute in range(journal.open_minute, min(past, context.memory.reach + 1)):
        if len(found) == context.limits.closes_max:
            break
        if not journal.shut(minute) and context.quiet(minute) and journal.covered(minute):
            found.append(minute)
    return found


def _prove(context: Context, minute: int) -> Steps[None]:
    """Read the minute's rows once more: rows less marks must leave nothing."""
    count = 0
    rest: list[BucketRow] = []
    cursors = dict.fromkeys(range(context.journal.pieces.get(minute, 1)), (-1, -1))
    while cursors:
        rows = yield from read_page(context, minute, min(cursors), cursors)
        count += len(rows)
        rest += context.journal.counting(minute, rows)
    rest = [row for row in rest if not context.memory.has(row.due_ms, row.filing)]
    rest = context.journal.counting(minute, rest)
    if rest:
        context.counts.remainders += len(rest)
        context.memory.admit(minute, rest, anew=True)
    else:
        context.journal.prove(minute, count)


def _put_away(context: Context) -> Steps[None]:
    """Keep the closing records of what is closed, then drop the buckets."""
    journal = context.journal
    while journal.closings:
        record: Closing = journal.closings[0]
        yield from insist(context.activities, PutClosing(record))
        journal.closings.popleft()
    for minute in sorted(journal.undropped):
        pieces = journal.pieces.get(minute, 1)
        yield from insist(context.activities, Drop(minute, pieces, journal.timestamp()))
        journal.dropped(minute)
