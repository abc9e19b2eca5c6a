"""What do all charts have: an area of so many units, a grid, labels beside it, and the faults drawn through it?

Shapes are SVG that is stretched to whatever width the page has; text is HTML that is placed by per cent, so that it is
as large on a phone as on a desk.
"""

from collections.abc import Sequence

from msgspec import Struct

from ..report import Band, Report
from .markup import Html, joined, tag
from .scale import Axis, times

SIZE = 1_000
"""Width and height of an area, in its own units."""
PIXELS = 1_100
"""About how wide an area is on a desk: what fits beside what is reckoned with it."""
LETTER_PIXELS = 6.4
CHIP_PIXELS = 22
CHIP_ROWS = 3
CHIPS_MAX = 60
CLOSE = 0.07
"""Numbers nearer than this would overlap on a phone."""


class Course(Struct, frozen=True):
    """The time of the run, which all charts over time share: its axis, and what was done to the system when."""

    end_ms: float
    axis: Axis
    bands: tuple[Band, ...]

    def x(self, ms: float) -> int:
        return round(self.axis.place(ms) * SIZE)


def course_of(report: Report) -> Course:
    """Long enough for all that the report knows a time of."""
    ends = [1, report.duration_ms, *(band.to_ms for band in report.bands), *(one.to_ms for one in report.tenures)]
    ends += [len(series.values) * series.step_ms for series in report.series]
    ends += [len(process.memory_mib) * process.step_ms for process in report.processes]
    bands = sorted(report.bands, key=lambda band: (band.from_ms, band.to_ms))
    return Course(max(ends), times(max(ends)), tuple(bands))


def area(title: str, description: str, *shapes: Html, class_: str = "") -> Html:
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *shapes,
        class_=f"area {class_}".strip(),
        viewBox=f"0 0 {SIZE} {SIZE}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}. {description}",
    )


def framed(
    shapes: Html, height_px: int, xs: Axis, ys: Axis, course: Course | None = None, over: Html | None = None
) -> Html:
    """The area with its labels; above it those of the faults, if it is over time. `over` is HTML upon it."""
    left = (
        tag("span", one.text, class_=_label("y", fine=one.fine), style=f"bottom:{one.place:.2%}") for one in ys.ticks
    )
    below = (
        tag("span", one.text, class_=_label("x", fine=one.fine), style=f"left:{one.place:.2%}") for one in xs.ticks
    )
    return tag(
        "div",
        chips(course) if course else None,
        tag("div", *left, tag("div", shapes, over, class_="inner"), class_="plot", style=f"height:{height_px}px"),
        tag("div", *below, class_="xs", aria_hidden="true"),
        class_="frame",
    )


def grid(xs: Axis, ys: Axis) -> Html:
    across = "".join(f"M0 {SIZE - round(one.place * SIZE)}H{SIZE}" for one in ys.ticks)
    upright = "".join(f"M{round(one.place * SIZE)} 0V{SIZE}" for one in xs.ticks)
    return tag("path", d=across + upright, class_="grid")


def faults(course: Course, *, tint: bool = True) -> Html:
    """Each a tint with an edge where it begins and one where it ends; edges alone where colours mean something else."""
    shapes = []
    for band in course.bands:
        left, right = course.x(band.from_ms), course.x(band.to_ms)
        if tint:
            shapes.append(tag("rect", x=left, y=0, width=max(1, right - left), height=SIZE, class_="fault"))
        shapes.append(tag("path", d=f"M{left} 0V{SIZE}M{right} 0V{SIZE}", class_="edge"))
    return joined(shapes)


def chips(course: Course) -> Html | None:
    """The faults' numbers, and what they are where there is room for it. All of them stand in the table of faults."""
    rows = [-1.0] * CHIP_ROWS
    shown, last = [], -1.0
    for number, band in enumerate(course.bands[:CHIPS_MAX], 1):
        place = course.axis.place(band.from_ms)
        wide = (CHIP_PIXELS + len(band.what) * LETTER_PIXELS) / PIXELS
        row, width = _room(rows, place, wide)
        if row is None:
            continue
        left = min(place, 1 - width)
        rows[row] = left + width
        word = tag("span", f" {band.what}", class_="word") if width == wide else None
        where = f"left:{left:.2%};top:{row * 18}px"
        shown.append(
            tag("span", tag("b", str(number)), word, class_=_label("chip", fine=place - last < CLOSE), style=where)
        )
        last = place if place - last >= CLOSE else last
    if not shown:
        return None
    high = sum(one >= 0 for one in rows) * 18
    return tag("div", *shown, class_="chips", style=f"height:{high}px", aria_hidden="true")


def _room(rows: Sequence[float], place: float, wide: float) -> tuple[int | None, float]:
    """The first row with room for all of it, else for its number alone."""
    for width in (wide, CHIP_PIXELS / PIXELS):
        for row, end in enumerate(rows):
            if width < 0.5 and min(place, 1 - width) >= end:
                return row, width
    return None, 0.0


def _label(class_: str, *, fine: bool) -> str:
    return f"{class_} fine" if fine else class_
