"""Which shortest history fails without each rule? Told step by step, as functions that assert what was promised.

Each holds with the rule and fails with its double of `ablations`. They are all about one shard: `a` owns it first,
then `b`, then `c`; an owner that was deposed and did not crash believes in its lease and goes on.
"""

from collections.abc import Callable

from minutewheel.dispatcher import effects as ask
from minutewheel.store.position import Log

from .deeds import Asking, Deed
from .stage import BUCKET, PUBLISH, RECEIPT, RECORD, ROW, Stage

Script = Callable[[Stage], None]


def acknowledged_first(stage: Stage) -> None:
    """A: `a` crashes between the two rows of a reschedule; `b` meets it again and needs the record that it copied."""
    a = stage.owner()
    stage.submit("x", 60_000)
    stage.pass_time(1_000, a)
    stage.ask("reschedule", "x", due_ms=30_000)
    stage.come_to(a, BUCKET)
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(40_000, b)
    assert stage.runs("x") == 1


def marked_after_acknowledgement(stage: Stage) -> None:
    """B: a checkpoint falls between release and publish, and the publish dies with `a`."""
    a = stage.owner()
    stage.submit("x", 1_000)
    stage.come_to(a, PUBLISH)
    stage.pass_time(1_000, a)
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(3_000, b)
    assert stage.runs("x") == 1


def progress_fenced(stage: Stage) -> None:
    """F: `a` goes on beside `b`: it files a task and records its offset. Its row does not count, its offset would."""
    a = stage.owner()
    stage.pass_time(1_000, a)
    b = stage.owner()
    stage.pass_time(1_000, b)
    stage.submit("x", 8_000)
    stage.pass_time(2_000, a)
    stage.crash(a, b)
    c = stage.owner()
    stage.pass_time(8_000, c)
    assert stage.runs("x") == 1


def written_again(stage: Stage) -> None:
    """G: `a` filed and crashed before it recorded that; what it wrote counts only under the fence of `b`."""
    a = stage.owner()
    stage.submit("x", 20_000)
    stage.come_to(a, RECEIPT)
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(3_000, b)
    stage.crash(b)
    c = stage.owner()
    stage.pass_time(20_000, c)
    assert stage.runs("x") == 1


def ledger_by_filing(stage: Stage) -> None:
    """K: a replaced task's first attempt has the number of the old version's first attempt."""
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_000, a)
    assert stage.work("x", "failed")
    stage.submit("x", 500, payload=b"2", on_conflict="replace")
    stage.pass_time(1_500, a)
    assert stage.deliveries("x")[-1].payload == b"2"
    assert stage.work("x", "done")


def reach_first(stage: Stage) -> None:
    """L: a task is filed into the next minute after that was read and before the answer came."""
    a = stage.owner()
    stage.pass_time(1_000, a)
    next_minute = stage.now_ms // 60_000 + 1
    read = stage.come_to(a, lambda deed: _reads(deed, next_minute), 40_000)
    read.do()
    stage.submit("x", 61_000)
    stage.pass_time(1_000, a)
    read.tell()
    stage.pass_time(31_000, a)
    assert stage.runs("x") == 1


def _reads(deed: Deed, minute: int) -> bool:
    return isinstance(deed, Asking) and isinstance(deed.effect, ask.ReadPage) and deed.effect.minute == minute


def removal_durable(stage: Stage) -> None:
    """M: `a` writes that a task is cancelled and crashes; `b` would fire it before it reads that log."""
    a = stage.owner()
    stage.submit("x", 5_000)
    stage.pass_time(1_000, a)
    cancel = stage.ask("cancel", "x")
    stage.come_to(a, ROW).do()
    stage.crash(a)
    stage.unread.add(Log.SUBMIT)
    b = stage.owner()
    stage.pass_time(6_000, b)
    stage.unread.clear()
    stage.pass_time(1_000, b)
    assert stage.answers(cancel) == {"cancelled"}
    assert stage.runs("x") == 0


def offset_last(stage: Stage) -> None:
    """O: `a` crashes between reading a task and filing it, and a checkpoint falls between."""
    a = stage.owner()
    stage.pass_time(1_000, a)
    stage.submit("x", 10_000)
    stage.come_to(a, BUCKET)
    stage.pass_time(1_000, a)
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(10_000, b)
    assert stage.runs("x") == 1


def told_when_durable(stage: Stage) -> None:
    """P: `a` crashes before it recorded a removal; `b` fires the task first and must say that it is too late."""
    a = stage.owner()
    stage.submit("x", 3_000)
    stage.pass_time(1_000, a)
    cancel = stage.ask("cancel", "x")
    stage.come_to(a, RECORD)
    stage.crash(a)
    stage.unread.add(Log.SUBMIT)
    b = stage.owner()
    stage.pass_time(4_000, b)
    stage.unread.clear()
    stage.pass_time(1_000, b)
    assert stage.answers(cancel) == {"too_late"}
    assert stage.runs("x") == 1


def closed_when_caught_up(stage: Stage) -> None:
    """Q: `a` recorded a removal and crashed before it wrote the row; the minute passes before `b` reads the cancel."""
    a = stage.owner()
    stage.submit("x", 20_000)
    stage.pass_time(1_000, a)
    cancel = stage.ask("cancel", "x")
    stage.come_to(a, ROW)
    stage.crash(a)
    stage.unread.add(Log.SUBMIT)
    b = stage.owner()
    stage.pass_time(70_000, b)
    stage.unread.clear()
    stage.pass_time(2_000, b)
    assert stage.runs("x") == 0
    assert stage.answers(cancel) == {"cancelled"}


def decided_once(stage: Stage) -> None:
    """R: `b` meets a reschedule that `a` has carried out: it must not take the new filing for the one to be removed."""
    a = stage.owner()
    stage.submit("x", 60_000)
    stage.pass_time(1_000, a)
    stage.ask("reschedule", "x", due_ms=10_000)
    told = stage.come_to(a, RECEIPT)
    told.do()
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(15_000, b)
    assert stage.runs("x") == 1


def answers_written(stage: Stage) -> None:
    """S: `a` said that it is too late; `b` meets the outcome first, and then there is a retry to cancel."""
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_500, a)
    stage.unread.add(Log.OUTCOMES)
    stage.end("x", "failed")
    cancel = stage.ask("cancel", "x")
    stage.come_to(a, RECEIPT).do()
    stage.crash(a)
    stage.unread = {Log.SUBMIT}
    b = stage.owner()
    stage.pass_time(500, b)
    stage.unread.clear()
    stage.pass_time(5_000, b)
    assert stage.answers(cancel) == {"too_late"}
    assert stage.runs("x") == 1


def timestamps_fenced(stage: Stage) -> None:
    """T: `a` has decided to file a task and is slow; `b` files it, cancels it, and then `a` writes its row."""
    a = stage.owner()
    stage.pass_time(500, a)
    stage.submit("x", 20_000)
    bucket = stage.come_to(a, BUCKET)
    b = stage.owner()
    stage.pass_time(500, b)
    cancel = stage.ask("cancel", "x")
    stage.pass_time(1_000, b)
    assert stage.answers(cancel) == {"cancelled"}
    bucket.do()
    bucket.tell()
    stage.run(a)
    assert stage.row("x").state == "cancelled"


def rows_of_reigns(stage: Stage) -> None:
    """V: `a` wrote the bucket row of a retry and no more; `b` lets a cancel end the task, then meets the outcome."""
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_500, a)
    stage.end("x", "failed")
    stage.come_to(a, ROW)
    stage.crash(a)
    stage.unread.add(Log.OUTCOMES)
    b = stage.owner()
    cancel = stage.ask("cancel", "x")
    stage.pass_time(500, b)
    assert stage.answers(cancel) == {"too_late"}
    stage.unread.clear()
    stage.pass_time(5_000, b)
    assert stage.runs("x") == 1
    assert stage.row("x").state == "cancelled"


def serial_by_key(stage: Stage) -> None:
    """X: a cancel and an outcome of one key come at once; if both start from the same row, one of them is undone."""
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_500, a)
    stage.unread = {Log.SUBMIT, Log.OUTCOMES}
    stage.end("x", "failed")
    stage.ask("cancel", "x")
    stage.unread.clear()
    stage.pass_time(5_000, a)
    assert stage.runs("x") == 1
    assert stage.row("x").state == "cancelled"


def filed_in_an_open_minute(stage: Stage) -> None:
    """Z: `a`, deposed, files a task and writes its row late; by then `b` has closed the minute, and now it meets it."""
    a = stage.owner()
    stage.pass_time(500, a)
    b = stage.owner()
    stage.pass_time(500, b)
    stage.submit("x", 5_000)
    row = stage.come_to(a, ROW)
    stage.crash(a)
    stage.unread.add(Log.SUBMIT)
    stage.pass_time(70_000, b)
    row.do()
    stage.unread.clear()
    stage.pass_time(3_000, b)
    assert stage.runs("x") == 1


SCRIPTS: dict[str, Script] = {
    "A": acknowledged_first,
    "B": marked_after_acknowledgement,
    "F": progress_fenced,
    "G": written_again,
    "K": ledger_by_filing,
    "L": reach_first,
    "M": removal_durable,
    "O": offset_last,
    "P": told_when_durable,
    "Q": closed_when_caught_up,
    "R": decided_once,
    "S": answers_written,
    "T": timestamps_fenced,
    "V": rows_of_reigns,
    "X": serial_by_key,
    "Z": filed_in_an_open_minute,
}
