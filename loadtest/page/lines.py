"""How did something go over time? Lines in one unit, each with a colour and a dash of its own."""

from collections.abc import Sequence
from itertools import pairwise

from ..report import Process, Series
from .frame import SIZE, Course, area, faults, framed, grid
from .markup import Html, folded, joined, table, tag
from .scale import Axis, fitting, linear
from .thin import Point, thinned
from .words import MISSING, compact, lasting, measure

LINES_MAX = 6
PROCESS_COLUMNS = 200
TITLES = {"ms": "Lateness over time", "tasks/s": "Throughput", "tasks/min": "Throughput", "%": "Shares over time"}


def groups(series: Sequence[Series]) -> list[list[Series]]:
    """Those of one unit share a chart, as long as they can be told apart in it."""
    units = dict.fromkeys(one.unit for one in series)
    same = ([one for one in series if one.unit == unit] for unit in units)
    return [lines[start : start + LINES_MAX] for lines in same for start in range(0, len(lines), LINES_MAX)]


def lines_chart(lines: Sequence[Series], course: Course) -> Html:
    unit = lines[0].unit
    title = TITLES.get(unit, f"{lines[0].name} over time" if len(lines) == 1 else f"Over time, in {unit}")
    known = [value for line in lines for value in line.values if value is not None]
    axis = axis_of(known, unit)
    steps = [thinned(line.values) for line in lines]
    paths = (
        tag("path", d=path_of(points.points, line.step_ms, course, axis), class_=f"line l{index}")
        for index, (line, points) in enumerate(zip(lines, steps, strict=True))
    )
    described = "; ".join(f"{line.name} from {_spread(line)}" for line in lines)
    drawing = area(title, described, grid(course.axis, axis), faults(course), *paths)
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), tag("p", _note(unit, axis, lines, [one.steps for one in steps]))),
        _legend(lines),
        framed(drawing, 210, course.axis, axis, course),
        folded("In numbers", table(("line", "least", "mean", "largest"), map(_row, lines))),
        class_="chart",
    )


def axis_of(known: Sequence[float], unit: str) -> Axis:
    """Lateness may be of any size; of all else, how far it is from nothing must be seen."""
    if unit == "ms":
        return fitting(known, lasting)
    return linear(min(known, default=0), max(known, default=0), compact)


def process_chart(processes: Sequence[Process], process: Process, course: Course) -> Html:
    """CPU and memory of one, on the scale of all."""
    cpu = fitting_all([one.cpu_percent for one in processes], "%")
    memory = fitting_all([one.memory_mib for one in processes], "MiB")
    pairs = (("CPU", "%", process.cpu_percent, cpu), ("Memory", "MiB", process.memory_mib, memory))
    seen = [_small(process, *pair, course) for pair in pairs if _measured(pair[2])]
    missing = [
        tag("p", f"{what}: not measured", class_="note") for what, _, values, _ in pairs if not _measured(values)
    ]
    return tag("section", tag("h3", process.name), tag("div", *seen, class_="pair"), *missing, class_="process")


def fitting_all(lines: Sequence[Sequence[float | None]], unit: str) -> Axis:
    """One scale for all, so that they can be compared."""
    most = max((value for line in lines for value in line if value is not None), default=0)
    whole = linear(0, most, lambda value: f"{compact(value)} {unit}")
    return Axis(whole.place, (whole.ticks[0], whole.ticks[-1]), whole.note)


def _small(process: Process, what: str, unit: str, values: Sequence[float | None], axis: Axis, course: Course) -> Html:
    known = _measured(values)
    said = f"{what}: mean {measure(_mean(known), unit)}, most {measure(max(known), unit)}"
    path = path_of(thinned(values, PROCESS_COLUMNS).points, process.step_ms, course, axis)
    shapes = (grid(course.axis, axis), faults(course), tag("path", d=path, class_="line l0"))
    drawing = area(f"{what} of {process.name}", said, *shapes)
    return tag("figure", tag("figcaption", said), framed(drawing, 64, course.axis, axis), class_="chart small")


def path_of(points: Sequence[Point | None], step_ms: int, course: Course, axis: Axis) -> str:
    """A line through the middle of each step, broken where there is a gap. A point between gaps is a dot."""
    drawn = []
    for before, point in pairwise([None, *points]):
        if point is None:
            continue
        x, y = course.x((point[0] + 0.5) * step_ms), SIZE - round(axis.place(point[1]) * SIZE)
        drawn.append(f"L{x} {y}" if before else f"M{x} {y}h0")
    return "".join(drawn)


def _legend(lines: Sequence[Series]) -> Html:
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag("svg", tag("path", d="M1 5H27", class_=f"line l{index}"), viewBox="0 0 28 10", aria_hidden="true"),
                line.name,
            )
            for index, line in enumerate(lines)
        ),
        class_="legend",
    )


def _note(unit: str, axis: Axis, lines: Sequence[Series], steps: Sequence[int]) -> Html:
    """What a reader must know to read it rightly."""
    told = [", ".join(filter(None, ("" if unit == "ms" else unit, axis.note)))]
    told += {
        f"{_steps(line)} are drawn in columns of {lasting(line.step_ms * count)}: "
        "the least and the largest value of each"
        for line, count in zip(lines, steps, strict=True)
        if count > 1
    }
    return joined(filter(None, told), " · ")


def _steps(line: Series) -> str:
    return f"{len(line.values):,} steps of {lasting(line.step_ms)}"


def _spread(line: Series) -> str:
    known = _measured(line.values)
    return f"{measure(min(known), line.unit)} to {measure(max(known), line.unit)}" if known else "nothing measured"


def _row(line: Series) -> tuple[str, ...]:
    known = _measured(line.values)
    if not known:
        return line.name, MISSING, MISSING, MISSING
    return line.name, *(measure(value, line.unit) for value in (min(known), _mean(known), max(known)))


def _measured(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
