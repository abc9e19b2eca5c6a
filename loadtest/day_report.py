"""What does a day in virtual time say in the one form that all load tests report in?

A day's proof knows more ways to fail than this form: what was unfinished at the end, minutes whose keys are others than
were submitted, and a profile that was not played whole. The first counts as lost; so do the others where no count names
a fault, with a remark that says so, lest a day that is not proven looks as if nothing was wrong.
"""

from collections.abc import Iterator

from .day import DayReport
from .report import Counts, Lateness, Process, Report, Series
from .virtual.accounts import Tally

MINUTE_MS = 60_000
CHANGES = ("filed", "cancelled", "moved", "retried")


def of_day(day: DayReport, command: str, version: str) -> Report:
    """`command` and `version` are those that played it, as far as they are known."""
    duration_ms = day.virtual_minutes * MINUTE_MS
    return Report(
        kind="a day in virtual time",
        profile=day.profile,
        seed=day.seed,
        command=command,
        version=version,
        started_ms=day.first_minute * MINUTE_MS,
        duration_ms=duration_ms,
        complete=day.complete,
        counts=_counts(day),
        lateness=Lateness(percentiles_ms=tuple(_percentiles(day))),
        series=_series(day),
        processes=(_largest(day, duration_ms),),
        core_s_per_million=day.cpu_us_task.figure,
        environment=_environment(day),
        remarks=tuple(_remarks(day)),
    )


def _counts(day: DayReport) -> Counts:
    tally = day.tally
    lost = tally.lost + day.unfinished
    return Counts(
        submitted=tally.submitted,
        accepted=tally.submitted,
        fired=tally.fired,
        lost=lost if _plain_fault(day) else _unexplained(day),
        duplicated=tally.duplicated,
        early=tally.early,
    )


def _plain_fault(day: DayReport) -> bool:
    """One that the counts name."""
    return bool(day.tally.lost or day.tally.duplicated or day.tally.early or day.unfinished)


def _unexplained(day: DayReport) -> int:
    """What counts as lost where no count names a fault."""
    return day.tally.mismatched or int(day.complete and not day.proven)


def _percentiles(day: DayReport) -> Iterator[tuple[float, int]]:
    for name, ms in day.virtual_lateness_ms.items():
        yield (100 if name == "max" else float(name.removeprefix("p"))), ms


def _series(day: DayReport) -> tuple[Series, ...]:
    if not day.fired_per_minute:
        return ()
    fired = tuple(map(float, day.fired_per_minute))
    return (Series(name="fired", unit="tasks/min", step_ms=MINUTE_MS, values=fired),)


def _largest(day: DayReport, duration_ms: int) -> Process:
    """The most that any process held, in each part: nobody looked at one process all the time."""
    parts = max(1, day.parts // day.dispatchers)
    return Process(
        name="the largest process of each part",
        step_ms=max(1, duration_ms // parts),
        cpu_percent=(),
        memory_mib=tuple(map(float, day.memory_mb)),
    )


def _environment(day: DayReport) -> dict[str, str]:
    return {
        "shards": str(day.shards),
        "dispatchers": str(day.dispatchers),
        "a turn of the loop": f"{day.turn_ms} virtual ms",
        "parts played": f"{day.parts_played} of {day.parts}",
        "processes": str(day.processes),
        "time on the clock": f"{day.seconds:,} s for the last run of it: {day.tasks_per_s:,} tasks/s",
        "CPU time": f"{day.cpu_s:,} s",
        "changes, as shares of all tasks": ", ".join(f"{name} {share:g}" for name, share in day.changes.items()),
    }


def _remarks(day: DayReport) -> Iterator[str]:
    yield "Time is virtual. No workers are played, so no task is done; recovered tasks are not counted."
    yield from _failings(day, day.tally)
    told = ", ".join(f"{name} {getattr(day.tally, name):,}" for name in CHANGES)
    yield f"Beside what was submitted: {told}; due beyond the day: {day.waiting:,}."
    yield f"Minutes proven: {day.minutes_proven:,}; of {day.tally.sampled:,} tasks each firing was kept whole."
    stages = sorted(day.stages_us.items(), key=lambda one: -one[1])
    budget = "met" if day.cpu_us_task.met else "not met"
    shares = ", ".join(f"{name} {us:g}" for name, us in stages)
    yield f"CPU time, {day.cpu_us_task.figure:g} µs a task (budget {day.cpu_us_task.budget:g}: {budget}): {shares}."
    pace = day.pace
    yield (
        f"Checkpoints of a shard in a minute: {pace.checkpoints_least:g} where it had the fewest tasks "
        f"({pace.tasks_least:,.0f}), {pace.checkpoints_most:g} where it had the most ({pace.tasks_most:,.0f})."
    )


def _failings(day: DayReport, tally: Tally) -> Iterator[str]:
    if day.unfinished:
        yield f"Unfinished at the end: {day.unfinished:,}, counted as lost."
    counted = "" if _plain_fault(day) else ", each counted as one lost"
    if tally.mismatched:
        other = "Minutes of a shard with other keys, or another closing record, than its tasks have"
        yield f"{other}: {tally.mismatched:,}{counted}."
    elif counted and _unexplained(day):
        yield "Fewer or more tasks were submitted than the profile has: counted as one lost."
    if day.complete and not day.proven:
        yield "This day is not proven."
