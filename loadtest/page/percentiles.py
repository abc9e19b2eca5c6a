"""How late were the tasks, from the most punctual half to the last of ten thousand?"""

from ..report import Lateness
from .frame import SIZE, area, framed, grid
from .markup import Html, table, tag
from .scale import linear, logarithmic, nines
from .words import lasting, percent

MEANING = "from the due time, or the acceptance if that came later, to the broker's time of the delivery"


def percentiles_chart(lateness: Lateness) -> Html:
    """Over the nines, so that what happens to one of ten thousand is as wide as what happens to nine of ten."""
    pairs = sorted(lateness.percentiles_ms)
    some = [ms for _, ms in pairs if ms > 0]
    xs, ys = nines(), logarithmic(min(some), max(some), lasting) if some else linear(0, 1, lasting)
    places = [(xs.place(percentage), ys.place(ms)) for percentage, ms in pairs]
    line = "L".join(f"{round(x * SIZE)} {SIZE - round(y * SIZE)}" for x, y in places)
    said = ", ".join(f"{percent(percentage)}: {lasting(ms)}" for percentage, ms in pairs)
    shapes = (grid(xs, ys), tag("path", d=f"M{line}", class_="line l0"))
    drawing = area("Percentiles of lateness", said, *shapes)
    dots = (tag("i", class_="dot", style=f"left:{x:.2%};bottom:{y:.2%}") for x, y in places)
    note = " · ".join(filter(None, (MEANING, xs.note, ys.note)))
    return tag(
        "figure",
        tag("figcaption", tag("h3", "Lateness"), tag("p", note)),
        framed(drawing, 230, xs, ys, over=tag("div", *dots, class_="over", aria_hidden="true")),
        table(
            ("percentile", *(percent(percentage) for percentage, _ in pairs)),
            [("late by", *(lasting(ms) for _, ms in pairs))],
            class_="wide",
        ),
        class_="chart",
    )
