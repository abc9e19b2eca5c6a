"""How are numbers, times and the verdict put into words?"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from ..report import Counts, Report

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000
SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
MISSING = "–"

COUNTS = {
    "submitted": "sent to the scheduler",
    "accepted": "acknowledged to the submitter",
    "rejected": "refused at the door",
    "fired": "published when they fell due",
    "done": "run by a worker to their end",
    "lost": "accepted, and never fired",
    "duplicated": "fired more than once",
    "early": "fired before their time",
    "recovered": "fired after their shard had changed hands",
}
"""Each count of the report, and what it counts."""
FAULTS = ("lost", "duplicated", "early")
"""The counts that must be nothing."""


class Verdict(Struct, frozen=True):
    """What the run says of the scheduler."""

    tone: Literal["good", "bad", "open"]
    text: str
    more: str = ""


def verdict_of(report: Report) -> Verdict:
    counts = report.counts
    bad = [words for words in (_fault(counts, name) for name in FAULTS) if words]
    partial = "" if report.complete else "Incomplete: the run was interrupted, and this holds for the part that ran."
    if bad:
        text = listed(bad)
        return Verdict("bad", f"{text[0].upper()}{text[1:]}.", partial)
    if not counts.fired:
        return Verdict("open", "No task fired, so there is nothing to judge.", partial)
    good = "Nothing lost, none early, none twice."
    return Verdict("good" if report.complete else "open", good, partial)


def _fault(counts: Counts, name: str) -> str:
    count: int = getattr(counts, name)
    said = {"lost": "lost", "duplicated": "fired more than once", "early": "fired early"}[name]
    return f"{tasks(count)} {said}" if count else ""


def tasks(count: int) -> str:
    return f"{count:,} task{'' if count == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def number(value: float) -> str:
    """With so many places as matter."""
    if value == int(value) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:,.3g}"


def compact(value: float) -> str:
    """`1.5 M`: short enough for an axis."""
    for size, suffix in SUFFIXES:
        if abs(value) >= size:
            return f"{value / size:.3g} {suffix}"
    return f"{value:.3g}"


def measure(value: float | None, unit: str) -> str:
    """With its unit; long times in seconds or more."""
    if value is None:
        return MISSING
    if unit == "ms":
        return lasting(value)
    return f"{number(value)} {unit}"


def lasting(ms: float) -> str:
    """A length of time, as short as it can be said: `80 ms`, `2.5 s`, `3 min 20 s`, `24 h`."""
    if abs(ms) < SECOND_MS:
        return f"{number(ms)} ms"
    if abs(ms) < MINUTE_MS:
        return f"{ms / SECOND_MS:.3g} s"
    whole_s = round(ms / SECOND_MS)
    hours, rest = divmod(whole_s, 3_600)
    minutes, seconds = divmod(rest, 60)
    parts = [f"{hours:,} h" if hours else "", f"{minutes} min" if minutes else "", f"{seconds} s" if seconds else ""]
    return " ".join(part for part in parts if part)


def elapsed(ms: float, step_ms: float) -> str:
    """A place on the axis of time: `h:mm` where steps are of minutes, else `h:mm:ss`."""
    minutes, seconds = divmod(round(ms / SECOND_MS), 60)
    told = f"{minutes // 60}:{minutes % 60:02d}"
    if step_ms < SECOND_MS:
        return f"{ms / SECOND_MS:.3g} s"
    return told if step_ms >= MINUTE_MS else f"{told}:{seconds:02d}"


def moment(ms: int) -> str:
    """A time of day, in UTC."""
    try:
        return f"{datetime.fromtimestamp(ms // SECOND_MS, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def percent(value: float) -> str:
    """Which percentile."""
    return "max" if value >= 100 else f"{value:g} %"
