"""How do the filings of a minute come into memory before they are due?

Minute after minute, `lead` ahead of the clock while the budget allows: first the marks, then the reach moves (rule
L), then page after page of rows, of which those count that are not marked, not here and valid (rule V). Where the
budget is used up in the middle of a minute and the next one presses, or an earlier one that was forgotten, the rest is
forgotten: the minute goes on a list and is read again when there is room. The minutes that a new owner finds overdue
start on that list, so that what is due now is loaded first.
"""

from ..store.task import MINUTE_MS, BucketRow
from .activity import Steps, Until, insist
from .context import Context
from .effects import ReadMarks, ReadPage
from .memory import NEVER


def loading(context: Context, marks_known_to: int) -> Steps[None]:
    """The activity: load what comes next, or what was forgotten. Marks up to `marks_known_to` came with the claim."""
    memory, journal, limits = context.memory, context.journal, context.limits
    while True:
        start_ms = (memory.reach + 1) * MINUTE_MS - limits.lead_ms
        yield Until(lambda: _next(context) is not None, wake_ms=start_ms)
        minute = _next(context)
        assert minute is not None
        if journal.shut(minute):
            memory.begin(minute)
            memory.end(minute)
            continue
        if minute > marks_known_to:
            journal.learn((yield from insist(context.activities, ReadMarks(minute))))
        yield from _load(context, minute)


def _next(context: Context) -> int | None:
    """The minute to load now, if any: the next one, or one that was forgotten when there is room or it presses.

    What is due now may be filed in a later minute, where a predecessor's clock was ahead and has shut the present one:
    the reach goes to where such tasks are placed.
    """
    memory = context.memory
    horizon_ms = context.now_ms + context.limits.lead_ms
    if memory.reach < context.journal.place(horizon_ms) and not memory.budget.full():
        return memory.reach + 1
    if not memory.forgotten:
        return None
    first = min(memory.forgotten)
    return first if _presses(context, first) or memory.budget.roomy() else None


def _presses(context: Context, minute: int) -> bool:
    """Is what was forgotten of this minute due soon, and room for it free, or taken by what is due after it?"""
    memory = context.memory
    point = memory.forgotten[minute]
    soon = point[0] <= context.now_ms + context.limits.lead_ms
    return soon and (not memory.budget.full() or memory.later(minute, point))


def _overtaken(context: Context, minute: int) -> bool:
    """Does an earlier minute press, while this one waits for room?"""
    first = min(context.memory.forgotten, default=minute)
    return first < minute and _presses(context, first)


def _load(context: Context, minute: int) -> Steps[None]:
    memory, budget = context.memory, context.memory.budget
    anew = minute <= memory.reach
    next_start_ms = (minute + 1) * MINUTE_MS
    memory.begin(minute)
    pieces = context.journal.pieces.get(minute, 1)
    cursors = dict.fromkeys(range(pieces), (-1, -1))
    while cursors and memory.forgotten.get(minute, NEVER) >= min(cursors.values()):  # else it must begin anew
        piece = min(cursors, key=cursors.__getitem__)
        read_to = max(cursors.values()) if len(cursors) == pieces else NEVER
        if budget.full() and not memory.make_room(minute, read_to, reading=True):
            go_on = lambda: (  # noqa: E731
                not budget.full() or context.now_ms >= next_start_ms or _overtaken(context, minute)
            )
            yield Until(go_on, wake_ms=next_start_ms)
            if budget.full():
                memory.end(minute, forget=cursors[piece])
                return
        rows = yield from read_page(context, minute, piece, cursors)
        memory.admit(minute, context.journal.counting(minute, rows), anew=anew)
    memory.end(minute)


def read_page(context: Context, minute: int, piece: int, cursors: dict[int, tuple[int, int]]) -> Steps[list[BucketRow]]:
    """Read a piece on from its cursor and move that; a piece that is read to its end leaves the cursors."""
    limit = context.limits.page_rows
    rows: list[BucketRow] = yield from insist(context.activities, ReadPage(minute, piece, cursors[piece], limit))
    if len(rows) < limit:
        del cursors[piece]
    else:
        cursors[piece] = rows[-1].due_ms, rows[-1].filing
    return rows
