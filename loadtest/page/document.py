"""What stands on the page of a load test's report, and in which order?

Pure. The page asks for nothing from anywhere, and its content policy forbids it to, so what is in a report cannot make
it either. Light or dark is the reader's setting.
"""

from collections.abc import Iterator

from ..report import Report
from .frame import Course, course_of
from .heat import heat_chart
from .lines import groups, lines_chart, process_chart
from .markup import Html, joined, table, tag
from .owners import owners_chart
from .percentiles import percentiles_chart
from .style import STYLE
from .words import COUNTS, FAULTS, Verdict, lasting, listed, moment, number, percent, verdict_of

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
ICONS = {"good": "M4 12l5 5L20 6", "bad": "M5 5l14 14M19 5L5 19", "open": "M12 4v10M12 19v.5"}
KEY_PERCENTS = (50, 99, 99.99, 100)
PROCESSES_MAX = 40
TIMES = "Times in charts count from the beginning of the run: h:mm, or h:mm:ss."


def page_of(report: Report) -> str:
    """The whole page."""
    title = f"Load test: {report.kind}"
    course = course_of(report)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    body = tag("body", _header(report, title), tag("main", *_sections(report, course)), _footer(report))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _header(report: Report, title: str) -> Html:
    facts = (
        ("profile", report.profile),
        ("seed", str(report.seed)),
        ("began", moment(report.started_ms)),
        ("lasted", lasting(report.duration_ms)),
    )
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    return tag("header", tag("h1", title), tag("dl", *pairs, class_="facts"), _banner(verdict_of(report)))


def _banner(verdict: Verdict) -> Html:
    path = tag("path", d=ICONS[verdict.tone])
    icon = tag("svg", path, viewBox="0 0 24 24", class_="icon", aria_hidden="true")
    words = tag("div", tag("strong", verdict.text), tag("p", verdict.more) if verdict.more else None)
    return tag("div", icon, words, class_=f"verdict {verdict.tone}", role="status")


def _sections(report: Report, course: Course) -> Iterator[Html]:
    yield _section("Counts", tag("dl", *_counts(report), class_="tiles counts"))
    yield _section("Figures", tag("dl", *_figures(report), class_="tiles"))
    if report.remarks:
        yield _section("Remarks", tag("ul", *(tag("li", one) for one in report.remarks), class_="remarks"))
    if report.bands:
        yield _section("Faults", _faults(course))
    if report.lateness.percentiles_ms or report.series:
        late = percentiles_chart(report.lateness) if report.lateness.percentiles_ms else None
        yield _section("Lateness and speed", late, *(lines_chart(lines, course) for lines in groups(report.series)))
    if report.heat:
        yield _section("Load", heat_chart(report, report.heat, course))
    if report.tenures:
        yield _section("Ownership", owners_chart(report.tenures, course))
    if report.processes:
        yield _section("Processes", *_processes(report, course))
    yield _section("Environment", table(("what", "value"), _environment(report)))


def _section(title: str, *children: Html | None) -> Html:
    return tag("section", tag("h2", title), *children)


def _counts(report: Report) -> Iterator[Html]:
    for name, meaning in COUNTS.items():
        count: int = getattr(report.counts, name)
        tone = ("bad" if count else "good") if name in FAULTS else None
        path = tag("path", d=ICONS[tone]) if tone else None
        icon = tag("svg", path, viewBox="0 0 24 24", class_="icon", aria_hidden="true") if path else None
        yield _tile(name, tag("span", icon, f"{count:,}", class_=tone), meaning)


def _figures(report: Report) -> Iterator[Html]:
    seconds = report.duration_ms / 1_000
    if seconds > 0:
        yield _tile("fired a second", number(report.counts.fired / seconds), "on average, over the whole run")
    known = dict(report.lateness.percentiles_ms)
    for key in KEY_PERCENTS:
        if key in known:
            yield _tile(f"lateness, {percent(key)}", lasting(known[key]), _so_late(key))
    cost = report.core_s_per_million
    yield _tile("cost of a million", "–" if cost is None else f"{number(cost)} s", "CPU time of our processes")


def _so_late(percentage: float) -> str:
    return "the latest of all" if percentage >= 100 else f"{percentage:g} of 100 tasks were no later"


def _tile(name: str, value: str, meaning: str) -> Html:
    return tag("div", tag("dt", name), tag("dd", value, class_="value"), tag("dd", meaning, class_="meaning"))


def _faults(course: Course) -> Html:
    """Their numbers are those in the charts."""
    rows = (
        (str(at), band.what, band.whom, lasting(band.from_ms), lasting(band.to_ms - band.from_ms))
        for at, band in enumerate(course.bands, 1)
    )
    note = tag("p", "Tinted in all charts over time, with these numbers where there is room.", class_="note")
    return joined((note, table(("no.", "what", "to whom", "after", "for"), rows)))


def _processes(report: Report, course: Course) -> Iterator[Html]:
    told = "CPU in per cent of one core. All processes on the same scale."
    if any(len(one.memory_mib) > 400 or len(one.cpu_percent) > 400 for one in report.processes):
        told += " Thinned to columns of which the least and the largest value are drawn."
    if len(report.processes) > PROCESSES_MAX:
        told += f" The first {PROCESSES_MAX} of {len(report.processes)}; all are in the report as JSON."
    yield tag("p", told, class_="note")
    for one in report.processes[:PROCESSES_MAX]:
        yield process_chart(report.processes, one, course)


def _environment(report: Report) -> Iterator[tuple[str, str]]:
    yield "command", report.command
    yield "version", report.version
    yield "seed", str(report.seed)
    yield from report.environment.items()


def _footer(report: Report) -> Html:
    missing = listed(
        [
            name
            for name, there in (
                ("percentiles of lateness", report.lateness.percentiles_ms),
                ("series over time", report.series),
                ("tasks by minute and shard", report.heat),
                ("owners of shards", report.tenures),
                ("processes", report.processes),
                ("cost", report.core_s_per_million is not None),
            )
            if not there
        ]
    )
    return tag("footer", tag("p", TIMES), tag("p", f"Not in this report: {missing}.") if missing else None)
