"""How fast, how small and how punctual is the wheel beside what one would use instead?

One minute of tasks is loaded in pages, one task in ten is cancelled while it waits, and one more in ten arrives late.
Four scenes, each on fresh objects:

    load      the pages come one after another: time, memory, collections of the garbage collector
    minute    the clock goes through the minute in ticks of 10 ms. Late tasks arrive up to 5 s before they are due and
              cancellations come at any time before: `fire_ticks_s`, `late_s`, `cancel_s`
    catch-up  all of that is overdue at once, as after a stall, and is released in turns of 2,000: `fire_s`
    peak      nine o'clock: a share of 100,000 / 375,000 of the tasks (100,000 of the reference load's 375,000) is due
              in the first millisecond of one second, and one tick must release it: `worst_tick_ms`; its longest turn
              of 2,000 is `worst_turn_ms`

Handing over is part of the time, letting go of what was handed over is not, for nobody. Each scene counts what it fired
against what it filed, and raises if a task is lost, repeated, early, or fired after its cancellation.

Each contender runs in a process of its own, because memory is measured as the growth of the resident set while the
pages are loaded, divided by their tasks: this counts what the machine really gives (allocator's rounding, garbage
collector's headers, spare room of lists and tables), which the sums of sizes of `tracemalloc` leave out, and
`tracemalloc` would slow the timed code. Times are CPU time of the measuring thread (nothing here waits), so that what
else runs on the machine counts little; several rounds take turns, and each figure is the best of them, because other
programs only ever make it worse.

A page is three columns: due times and filings as arrays of 64-bit integers, records as a list of `bytes`; so much for
`load_s`. `load_lists_s` is the same with lists of Python integers in the place of arrays: dearer for the wheel, which
packs them, and cheaper for the others, which keep them. All other figures are the same either way.
"""

from __future__ import annotations

import gc
import multiprocessing
import subprocess
from bisect import bisect_left
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from .contenders import CONTENDERS
from .minute import MINUTE, MINUTE_MS, RECORD_BYTES, Firings, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .contenders import Contender, Page, Task

TICK_MS = 10
TURN_LENGTH = 2_000
LEAD_MS = 30_000
CATCH_UPS = 3
"""This scene is short, and so what else runs shows most in it: it is played more often, for everybody."""


class Measure(Struct, frozen=True, kw_only=True):
    """What one contender needed. Times in seconds are totals over all tasks of their kind."""

    load_s: float
    load_lists_s: float
    fire_s: float
    fire_ticks_s: float
    cancel_s: float
    late_s: float
    bytes_per_task: float
    gc_collections: int
    worst_tick_ms: float
    worst_turn_ms: float
    fired: int


class Ratios(Struct, frozen=True, kw_only=True):
    """The wheel's gain over one contender (2.0: the wheel takes half the time); of memory, the wheel's share."""

    load: float
    load_lists: float
    fire: float
    fire_ticks: float
    cancel: float
    late: float
    worst_tick: float
    memory: float


class WheelReport(Struct, frozen=True, kw_only=True, rename={"call_at": "asyncio.call_at"}):
    """The best of all rounds, for each contender under its name."""

    tasks: int
    late: int
    cancelled: int
    peak: int
    record_bytes: int
    seed: int
    rounds: int
    wheel: Measure
    heapq: Measure
    sortedcontainers: Measure
    call_at: Measure
    ratios: dict[str, Ratios]
    bytes_per_task: float
    gc_collections: int

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, under the names that are printed."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def run_wheel_benchmark(
    tasks: int, seed: int, progress: Callable[[str], None] | None = None, *, rounds: int = 3
) -> WheelReport:
    """Measure the wheel and its rivals; `progress` is told what runs. Raises ModuleNotFoundError without the extra."""
    _require_extra()
    best: dict[str, Measure] = {}
    for turn in range(1, rounds + 1):
        for name in CONTENDERS:
            if progress:
                progress(f"{name}, round {turn} of {rounds}")
            measure = _measure_apart(name, tasks, seed)
            best[name] = _better(best[name], measure) if name in best else measure
    workload = Workload(tasks, seed)
    wheel = best["wheel"]
    return WheelReport(
        tasks=tasks,
        late=len(workload.late),
        cancelled=len(workload.cancelled),
        peak=workload.peak,
        record_bytes=RECORD_BYTES,
        seed=seed,
        rounds=rounds,
        wheel=wheel,
        heapq=best["heapq"],
        sortedcontainers=best["sortedcontainers"],
        call_at=best["asyncio.call_at"],
        ratios={name: _ratios(wheel, rival) for name, rival in best.items() if name != "wheel"},
        bytes_per_task=wheel.bytes_per_task,
        gc_collections=wheel.gc_collections,
    )


def _require_extra() -> None:
    try:
        import sortedcontainers  # noqa: F401  asked for here, so that its absence is not found out after minutes
    except ImportError as error:
        raise ModuleNotFoundError(
            "the wheel's load test compares with sortedcontainers: pip install 'minutewheel[loadtest]'"
        ) from error


def _measure_apart(name: str, tasks: int, seed: int) -> Measure:
    """Measure in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure_contender, name, tasks, seed).result()


def _better(one: Measure, other: Measure) -> Measure:
    assert one.fired == other.fired
    return Measure(**{name: min(getattr(one, name), getattr(other, name)) for name in Measure.__struct_fields__})


def _ratios(wheel: Measure, rival: Measure) -> Ratios:
    return Ratios(
        load=round(rival.load_s / wheel.load_s, 2),
        load_lists=round(rival.load_lists_s / wheel.load_lists_s, 2),
        fire=round(rival.fire_s / wheel.fire_s, 2),
        fire_ticks=round(rival.fire_ticks_s / wheel.fire_ticks_s, 2),
        cancel=round(rival.cancel_s / wheel.cancel_s, 2),
        late=round(rival.late_s / wheel.late_s, 2),
        worst_tick=round(rival.worst_tick_ms / wheel.worst_tick_ms, 2),
        memory=round(wheel.bytes_per_task / rival.bytes_per_task, 3),
    )


def measure_contender(name: str, tasks: int, seed: int) -> Measure:
    """All scenes of one contender, in this process: which should be fresh, for the sake of its memory."""
    workload = Workload(tasks, seed)
    load_s, bytes_per_task, gc_collections, contender = _scene_load(name, workload)
    late_s, cancel_s, fire_ticks_s = _scene_minute(contender, workload)
    load_lists_s = _scene_load_lists(name, workload)
    fire_s = min(_scene_catch_up(name, workload) for _ in range(CATCH_UPS))
    worst_tick_ms, worst_turn_ms = _scene_peak(name, workload)
    return Measure(
        load_s=load_s,
        load_lists_s=load_lists_s,
        fire_s=fire_s,
        fire_ticks_s=fire_ticks_s,
        cancel_s=cancel_s,
        late_s=late_s,
        bytes_per_task=bytes_per_task,
        gc_collections=gc_collections,
        worst_tick_ms=worst_tick_ms,
        worst_turn_ms=worst_turn_ms,
        fired=tasks + len(workload.late) - len(workload.cancelled),
    )


def _scene_load(name: str, workload: Workload) -> tuple[float, float, int, Contender]:
    contender = CONTENDERS[name](workload.start_ms - LEAD_MS)
    gc.collect()
    collections, resident_bytes = _collections(), _resident_bytes()
    load_s = _load(contender, workload.pages())
    collections, resident_bytes = _collections() - collections, _resident_bytes() - resident_bytes
    return load_s, round(resident_bytes / workload.tasks, 1), collections, contender


def _scene_load_lists(name: str, workload: Workload) -> float:
    contender = CONTENDERS[name](workload.start_ms - LEAD_MS)
    load_s = _load(contender, map(_with_lists, workload.pages()))
    contender.close()
    return load_s


def _with_lists(page: Page) -> Page:
    # Made from the arrays, so that the integers lie in memory in the order of the page, as a decoder leaves them.
    return page._replace(dues=list(page.dues), filings=list(page.filings))


def _load(contender: Contender, pages: Iterator[Page]) -> float:
    seconds = 0.0
    for page in pages:
        begin = thread_time()
        contender.load(page)
        seconds += thread_time() - begin
    return seconds


def _scene_minute(contender: Contender, workload: Workload) -> tuple[float, float, float]:
    """Seconds for late arrivals, cancellations and firing, tick by tick."""
    late, cancelled = list(reversed(workload.late)), list(reversed(workload.cancelled))
    late_s = cancel_s = fire_s = 0.0
    firings = Firings()
    for now_ms in range(workload.start_ms - LEAD_MS, workload.start_ms + MINUTE_MS + TICK_MS, TICK_MS):
        late_s += _add_until(now_ms, contender, late)
        cancel_s += _cancel_until(now_ms, contender, cancelled)
        fire_s += sum(_fire_all(now_ms, contender, firings))
    firings.check(workload, late_ms_max=TICK_MS - 1)
    contender.close()
    return late_s, cancel_s, fire_s


def _scene_catch_up(name: str, workload: Workload) -> float:
    contender = CONTENDERS[name](workload.start_ms - LEAD_MS)
    _load(contender, workload.pages())
    late, cancelled = list(reversed(workload.late)), list(reversed(workload.cancelled))
    end_ms = workload.start_ms + MINUTE_MS
    _add_until(end_ms, contender, late)
    _cancel_until(end_ms, contender, cancelled)
    firings = Firings()
    fire_s = sum(_fire_all(end_ms, contender, firings))
    firings.check(workload, late_ms_max=MINUTE_MS)
    contender.close()
    return fire_s


def _scene_peak(name: str, workload: Workload) -> tuple[float, float]:
    """Milliseconds of the whole tick, and of its longest turn."""
    contender = CONTENDERS[name](workload.start_ms - LEAD_MS)
    _load(contender, workload.peak_pages())
    firings = Firings()
    _fire_all(workload.start_ms - 1, contender, firings)
    assert firings.count == 0
    turns = _fire_all(workload.start_ms, contender, firings)
    if firings.count != workload.peak:
        raise RuntimeError(f"of {workload.peak} tasks of the peak, {firings.count} fired")
    contender.close()
    return round(sum(turns) * 1_000, 3), round(max(turns) * 1_000, 3)


def _add_until(now_ms: int, contender: Contender, late: list[tuple[int, Task]]) -> float:
    """File what arrives at or before now; `late` is in reverse."""
    arrived = []
    while late and late[-1][0] <= now_ms:
        arrived.append(late.pop()[1])
    begin = thread_time()
    for task in arrived:
        contender.add(MINUTE, task)
    return thread_time() - begin


def _cancel_until(now_ms: int, contender: Contender, cancelled: list[tuple[int, int, int]]) -> float:
    place = bisect_left(cancelled, -now_ms, key=lambda row: -row[0])
    rows = cancelled[place:]
    del cancelled[place:]
    begin = thread_time()
    answers = [contender.cancel(due_ms, filing) for _, due_ms, filing in rows]
    seconds = thread_time() - begin
    if not all(answers):
        raise RuntimeError("a waiting task could not be cancelled")
    return seconds


def _fire_all(now_ms: int, contender: Contender, firings: Firings) -> list[float]:
    """Release all that is due, and return the seconds of each turn. A turn that is not full is the last."""
    turns: list[float] = []
    count = TURN_LENGTH
    while count >= TURN_LENGTH:
        begin = thread_time()
        fired = contender.fire(now_ms, TURN_LENGTH)
        turns.append(thread_time() - begin)
        count = firings.note(now_ms, fired)
    return turns


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())


def _resident_bytes() -> int:
    """The resident set of this process."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        import resource

        return int(statm.read_text().split()[1]) * resource.getpagesize()
    import os

    told = subprocess.run(  # noqa: S603  fixed arguments
        ["/bin/ps", "-o", "rss=", "-p", str(os.getpid())], check=True, capture_output=True, text=True
    )
    return int(told.stdout) * 1_024
