"""What does a day of a billion tasks do to this system?

The wheel, the gate and the shards are the product's; time is virtual, and store and broker count and digest (see
`virtual`). Here: which parts are to be played, by which processes, and what they come to in all. Work is shared among
processes part by part; what is done is on file, so an interrupted run goes on where it was.
"""

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized, SynchronizedArray
from pathlib import Path

import msgspec
from msgspec import Struct

from ..store.task import SHARDS
from .figures import Figure, at_most, percentile_of
from .profile import Name, Profile
from .virtual.accounts import SAMPLE, Tally
from .virtual.parts import Interrupted, Plan, Played, parts_in, play_part, played_so_far
from .virtual.plants import Plant

BILLION = 1_000_000_000
CPU_US_TASK = 7.2
"""An hour on two cores, for a billion tasks."""
MIDNIGHT_MS = 29_846_880 * 60_000
"""Midnight of the day that is played, 2026-09-30 in UTC: any would do, and the same one gives the same digests."""
PLAN_FILE = "plan.json"
LOOK_S = 0.5
PERCENTS = (50, 99, 99.9, 99.99)


class OtherRun(Exception):
    """The folder holds parts of another run."""


class Pace(Struct, frozen=True, kw_only=True):
    """Checkpoints of a shard in a minute, in the tenth of all minutes with the fewest tasks and that with the most."""

    tasks_least: float
    checkpoints_least: float
    tasks_most: float
    checkpoints_most: float


class DayReport(Struct, frozen=True, kw_only=True):
    """What was played, what it came to, and what it cost.

    `proven`: complete, and fired = submitted + filed − cancelled − moved by count and digest in every minute, nothing
    early, nothing left. `tally` is of the closed minutes, `waiting` what is due beyond the day. `cpu_us_task` is of all
    processes; `stages_us` shares it out by elapsed time. `memory_mb` is the most that a process held in each part.
    """

    profile: str
    seed: int
    shards: int
    dispatchers: int
    virtual_minutes: int
    turn_ms: int
    changes: dict[str, float]
    sample: int
    parts: int
    parts_played: int
    complete: bool
    proven: bool
    tally: Tally
    waiting: int
    unfinished: int
    minutes_proven: int
    virtual_lateness_ms: dict[str, int]
    cpu_us_task: Figure
    stages_us: dict[str, float]
    checkpoints: int
    checkpoints_per_1000: float
    pace: Pace
    memory_mb: list[int]
    processes: int
    cpu_s: float
    seconds: float
    """Of this run alone, where an earlier one had played some parts."""
    tasks_per_s: float
    first_minute: int = MIDNIGHT_MS // 60_000
    fired_per_minute: list[int] = []
    """From the first minute on; none in a report of an earlier release."""


def plan_of(
    profile: Name, tasks: int, seed: int, *, parts: int = 8, turn_ms: int = 100, plant: Plant | None = None
) -> Plan:
    """About so many tasks of a load of a billion, each minute as full as it is there.

    As many shards as hold them; of one shard only a stretch of time, if that is enough.
    """
    fleet_tasks = max(tasks, BILLION)
    shards = min(SHARDS, max(1, round(tasks * SHARDS / fleet_tasks)))
    whole = Profile(profile, fleet_tasks, seed, MIDNIGHT_MS)
    span = whole.around_nine(0, tasks) if shards == 1 else whole.span
    return Plan(
        profile=profile,
        fleet_tasks=fleet_tasks,
        seed=seed,
        shards=shards,
        span=(span.start, span.stop),
        parts=min(parts, len(span)),
        turn_ms=turn_ms,
        midnight_ms=MIDNIGHT_MS,
        plant=plant,
    )


def tasks_of(plan: Plan) -> int:
    """How many tasks the profile has for what is played."""
    profile = plan.load()
    return sum(profile.of_shard(shard, minute) for shard in range(plan.shards) for minute in profile.span)


def scratch_of(plan: Plan) -> Path:
    """Where this plan's parts are kept if no folder is named: the same one for the same plan."""
    plant = f"-{plan.plant}" if plan.plant else ""
    name = f"minutewheel-{plan.profile}-{tasks_of(plan)}-{plan.seed}-{plan.parts}-{plan.turn_ms}{plant}"
    return Path(tempfile.gettempdir()) / name


def run_day(plan: Plan, folder: Path, processes: int, tell: Callable[[str, int], None]) -> DayReport:
    """Play what is missing, and report on all of it; after Ctrl-C on what is done. `OtherRun`, `OSError`.

    What is kept in the folder goes when all is played.
    """
    _claim(plan, folder)
    began = time.monotonic()
    played = [played_so_far(plan, dispatcher, folder) for dispatcher in range(plan.dispatchers)]
    before = sum(one.fired for one in played)
    with _crew(plan, folder, processes, played) as crew:
        for one in crew.play(tell):
            played[one.dispatcher] = one
    report = _report(plan, played, processes, time.monotonic() - began, before)
    if report.complete:
        _clear(folder)
    return report


def _claim(plan: Plan, folder: Path) -> None:
    """The folder is this plan's, or becomes it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / PLAN_FILE
    told = msgspec.json.encode(plan)
    if not file.exists():
        file.write_bytes(told)
    elif file.read_bytes() != told:
        raise OtherRun(f"{folder} holds parts of another run: {file.read_text()}")


def _clear(folder: Path) -> None:
    """Remove what is ours, and the folder if nothing else is in it."""
    (folder / PLAN_FILE).unlink()
    for file in parts_in(folder):
        file.unlink()
    with suppress(OSError):
        folder.rmdir()


class _Crew:
    """The processes. Each dispatcher's next part is given out when the one before is done."""

    def __init__(self, plan: Plan, folder: Path, executor: ProcessPoolExecutor, shared: "_Shared") -> None:
        self._plan = plan
        self._folder = folder
        self._executor = executor
        self._shared = shared
        self._playing: set[Future[Played | None]] = set()

    def give(self, dispatcher: int) -> None:
        self._playing.add(self._executor.submit(_play, self._plan, dispatcher, self._folder))

    def play(self, tell: Callable[[str, int], None]) -> Iterator[Played]:
        """What is done, part by part. Ctrl-C ends it after the minute that is being played."""
        try:
            while self._playing:
                done, self._playing = wait(self._playing, LOOK_S, FIRST_COMPLETED)
                tell("fired", sum(self._shared.fired[:]))
                for one in done:
                    played = one.result()
                    if played is None:
                        continue
                    if played.parts < self._plan.parts:
                        self.give(played.dispatcher)
                    yield played
        except KeyboardInterrupt:
            self._shared.stop.value = 1


class _Shared(Struct, frozen=True):
    fired: "SynchronizedArray[int]"
    stop: "Synchronized[int]"


@contextmanager
def _crew(plan: Plan, folder: Path, processes: int, played: Sequence[Played]) -> Iterator[_Crew]:
    context = get_context("spawn")
    shared = _Shared(context.Array("q", plan.dispatchers), context.Value("b", 0))
    for one in played:
        shared.fired[one.dispatcher] = one.fired
    with ProcessPoolExecutor(
        min(processes, plan.dispatchers), context, _begin, (shared.fired, shared.stop)
    ) as executor:
        crew = _Crew(plan, folder, executor, shared)
        for one in sorted(played, key=lambda one: one.parts):
            if one.parts < plan.parts:
                crew.give(one.dispatcher)
        try:
            yield crew
        finally:
            executor.shutdown(cancel_futures=True)


_shared: _Shared
"""In a process of the crew: what it shares with the one that began it."""


def _begin(fired: "SynchronizedArray[int]", stop: "Synchronized[int]") -> None:
    global _shared  # noqa: PLW0603 - a process is told so once, when it begins
    _shared = _Shared(fired, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process tells the others


def _play(plan: Plan, dispatcher: int, folder: Path) -> Played | None:
    def tell(fired: int) -> bool:
        _shared.fired[dispatcher] = fired
        return not _shared.stop.value

    try:
        return play_part(plan, dispatcher, folder, tell)
    except Interrupted:
        return None


def _report(plan: Plan, played: Sequence[Played], processes: int, seconds: float, before: int) -> DayReport:
    profile = plan.load()
    tally, late_ms = Tally(), Counter[int]()
    minutes: dict[int, Tally] = {}
    stages: dict[str, float] = {}
    for one in played:
        late_ms.update(one.late_ms)
        for minute, part in one.minutes.items():
            minutes.setdefault(minute, Tally()).add(part)
        for stage, spent in one.stages.items():
            stages[stage] = stages.get(stage, 0.0) + spent
    for part in minutes.values():
        tally.add(part)
    cpu_s, fired = sum(one.cpu_s for one in played), sum(one.fired for one in played)
    checkpoints = sum(checkpoints for one in played for _, checkpoints in one.pace.values())
    complete = all(one.parts == plan.parts for one in played)
    unfinished = sum(one.unfinished for one in played)
    us_task = cpu_s / max(1, fired) * 1_000_000
    elapsed = sum(stages.values()) or 1.0
    return DayReport(
        profile=plan.profile,
        seed=plan.seed,
        shards=plan.shards,
        dispatchers=plan.dispatchers,
        virtual_minutes=len(profile.span),
        turn_ms=plan.turn_ms,
        changes=msgspec.to_builtins(profile.mix),
        sample=SAMPLE,
        parts=plan.parts * plan.dispatchers,
        parts_played=sum(one.parts for one in played),
        complete=complete,
        proven=complete and tally.proven and not unfinished and tally.submitted == tasks_of(plan),
        tally=tally,
        waiting=sum(one.waiting for one in played),
        unfinished=unfinished,
        minutes_proven=sum(part.proven for part in minutes.values()),
        virtual_lateness_ms={f"p{percent:g}": percentile_of(late_ms, percent) for percent in PERCENTS}
        | {"max": max(late_ms, default=0)},
        cpu_us_task=at_most(us_task, CPU_US_TASK),
        stages_us={stage: round(spent / elapsed * us_task, 3) for stage, spent in sorted(stages.items())},
        checkpoints=checkpoints,
        checkpoints_per_1000=round(checkpoints / max(1, fired) * 1_000, 3),
        pace=_pace([pair for one in played for pair in one.pace.values()], plan),
        memory_mb=[max(part) >> 20 for part in zip(*(one.memory_bytes for one in played), strict=False)],
        processes=processes,
        cpu_s=round(cpu_s, 1),
        seconds=round(seconds, 1),
        tasks_per_s=round((fired - before) / seconds, 1),
        first_minute=min(minutes, default=MIDNIGHT_MS // 60_000),
        fired_per_minute=[minutes[minute].fired if minute in minutes else 0 for minute in _through(minutes)],
    )


def _through(minutes: Mapping[int, Tally]) -> range:
    return range(min(minutes), max(minutes) + 1) if minutes else range(0)


def _pace(pairs: Sequence[tuple[int, int]], plan: Plan) -> Pace:
    ordered = sorted(pair for pair in pairs if pair[0])
    tenth = max(1, len(ordered) // 10)
    shards = plan.shards / plan.dispatchers

    def mean(some: Sequence[tuple[int, int]], which: int) -> float:
        return round(sum(pair[which] for pair in some) / max(1, len(some)) / shards, 2)

    least, most = ordered[:tenth], ordered[-tenth:]
    return Pace(
        tasks_least=mean(least, 0),
        checkpoints_least=mean(least, 1),
        tasks_most=mean(most, 0),
        checkpoints_most=mean(most, 1),
    )


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
