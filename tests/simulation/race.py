"""Does what was seen of one race contradict what its command was told?

Cancelled: the attempt that waited never ran, nor any later one. Too late: it ran, and a cancel ended its retries, a
reschedule left it at its old time. Rescheduled: it ran once, at its new time only. Unknown: it ran as if never asked.
"""

from minutewheel.broker.due import Delivered
from minutewheel.broker.receipt import Answer, Receipt
from minutewheel.store.task import TaskRow
from msgspec import Struct

from .ground import START_MS
from .stage import OTHER

KINDS = ("cancel", "reschedule", "retry")


class Race(Struct, eq=False):
    """A task, its command, and all that was seen of them. `script` is one letter an attempt: done or failed."""

    kind: str
    id: str
    due_ms: int
    script: str
    offset_ms: int
    through: int
    new_ms: int = 0
    asked_ms: int = 0
    beside: bool = False
    """Is the task submitted only about when its command comes?"""
    after_failure: bool = False
    """Does a cancel of the retry aim at the failure, and not at the retry's due time?"""
    receipts: list[Receipt] = []
    published: list[tuple[int, Delivered]] = []
    started: list[int] = []

    @property
    def command_ms(self) -> int:
        return self.due_ms + self.offset_ms

    def __str__(self) -> str:
        answers = [(str(one.answer), one.attempt, one.filing >> 14, one.state) for one in self.receipts]
        published = [(at_ms - START_MS, one.attempt, one.filing >> 14) for at_ms, one in self.published]
        told = f"due {self.due_ms - START_MS} {self.offset_ms:+} new {self.new_ms - START_MS} script {self.script}"
        return f"{self.kind} of {self.id}, {told}: told {answers}, published {published}, started {len(self.started)}"


def fault_of(race: Race, row: TaskRow | None) -> str:
    """What contradicts the answer, or nothing."""
    told = race.receipts
    unordered = race.beside or race.through == OTHER
    if race.through == OTHER and any(one.answer is not Answer.UNKNOWN for one in told):
        # *Unknown* leaves no trace: if the task comes through its own log before the command is met again after a
        # crash, that is answered anew. It is the only answer of which this may be so.
        told = [one for one in told if one.answer is not Answer.UNKNOWN]
    if len({one.answer for one in told}) != 1:
        return "not one answer"
    if row is None or row.state not in {"done", "cancelled"}:
        return "not at its end"
    if any(at_ms < delivered.due_ms for at_ms, delivered in race.published):
        return "early"
    if len(race.published) < len(race.started) or {one.filing for _, one in race.published} != set(race.started):
        return "published, and never started"
    receipt = told[-1]
    match receipt.answer:
        case Answer.CANCELLED:
            return _unless(row.state == "cancelled" and not _ran(race, receipt), "cancelled, and it ran")
        case Answer.TOO_LATE if race.kind == "reschedule":
            return _unless(_ran_once_for(race, race.due_ms), "too late, and it did not run once at its old time")
        case Answer.TOO_LATE:
            last = race.started[-1:] == [receipt.filing] and len(race.started) == receipt.attempt
            return _unless(last, "too late, and that attempt was not the last that ran")
        case Answer.RESCHEDULED:
            there = _ran_once_for(race, race.new_ms) and race.started == [receipt.filing]
            return _unless(there, "rescheduled, and it did not run once at its new time")
        case Answer.UNKNOWN:
            return _unless(unordered and len(race.started) == len(race.script), "unknown, and it was known")
    return f"answered {receipt.answer}"


def repeated(race: Race) -> str:
    once = len(race.receipts) == 1 and len(race.published) == len(race.started)
    return _unless(once, "told or published twice without a fault")


def _unless(holds: bool, what: str) -> str:
    return "" if holds else what


def _ran(race: Race, receipt: Receipt) -> bool:
    """Did the attempt that was cancelled run, or a later one? Earlier ones may have."""
    return receipt.filing in race.started or len(race.started) >= receipt.attempt


def _ran_once_for(race: Race, due_ms: int) -> bool:
    return len(race.started) == 1 and {one.due_ms for _, one in race.published} == {due_ms}
