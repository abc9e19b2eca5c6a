"""What state is a task in, where is it, and why has it not run yet?

The task row says what its owner decided; that a scheduled task is queued follows from its minute's journal, that it
is running from the ledger. Three reads that are not one: a task that moves meanwhile may be seen a step behind.
"""

from typing import Literal

from msgspec import Struct

from ..broker.partitioner import shard_of
from ..store.port import Ledger, Store
from ..store.task import TaskRow

State = Literal["scheduled", "queued", "running", "done", "dead", "cancelled", "expired"]
FINAL = frozenset({"done", "dead", "cancelled", "expired"})


class TaskView(Struct, frozen=True):
    """A task as it was seen.

    `minute` and `shard` are where its last filing was put; `cause` is the filing, whose number says which record
    made it; `worker` is who holds it while it runs, and `starts` how often that filing was started there.
    `note` is its history. `why` says in words what it waits for, or how it ended.
    """

    key: str
    state: State
    queue: str
    due_ms: int
    attempt: int
    shard: int
    minute: int
    filing: int
    updated_ms: int
    why: str
    note: str = ""
    worker: str = ""
    starts: int = 0

    @property
    def final(self) -> bool:
        return self.state in FINAL


async def look(store: Store, ledger: Ledger, key: str, now_ms: int) -> TaskView | None:
    """None for a key that is not known (or not yet: a submission is seen when its owner has applied it)."""
    shard = shard_of(key)
    rows = await store.tasks(shard, [key])
    if not rows:
        return None
    row = rows[0]
    if row.state != "scheduled":
        return _view(row, shard, row.state, row.note.rpartition("\n")[2] or row.state)
    if not await _published(store, shard, row):
        return _view(row, shard, "scheduled", _waiting(row, now_ms))
    for place, filing, holder, starts in await ledger.running(now_ms):
        if filing == row.filing and place[:2] == (row.queue, shard):
            return _view(row, shard, "running", f"started {starts} times, the last by {holder}", holder, starts)
    return _view(row, shard, "queued", "published, and not started, or its outcome is not applied yet")


async def _published(store: Store, shard: int, row: TaskRow) -> bool:
    """Whether its minute's journal has it as fired; that of a closed minute is gone, for all of it was."""
    marks = await store.marks(shard, [row.minute])
    if row.minute in marks and row.filing in marks[row.minute].fired:
        return True
    progress = await store.progress(shard, -1)
    return row.minute < progress.open_minute or row.minute in progress.closed


def _waiting(row: TaskRow, now_ms: int) -> str:
    again = f" (attempt {row.attempt})" if row.attempt > 1 else ""
    if row.due_ms > now_ms:
        return f"due in {row.due_ms - now_ms} ms{again}"
    return f"due since {now_ms - row.due_ms} ms, and not recorded as published{again}"


def _view(row: TaskRow, shard: int, state: State, why: str, worker: str = "", starts: int = 0) -> TaskView:
    return TaskView(
        key=row.key,
        state=state,
        queue=row.queue,
        due_ms=row.due_ms,
        attempt=row.attempt,
        shard=shard,
        minute=row.minute,
        filing=row.filing,
        updated_ms=row.updated_ms,
        why=why,
        note=row.note,
        worker=worker,
        starts=starts,
    )
