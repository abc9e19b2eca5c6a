import pytest
from minutewheel.loadtest.page.frame import course_of
from minutewheel.loadtest.page.lines import LINES_MAX, axis_of, groups, lines_chart, path_of, process_chart
from minutewheel.loadtest.page.scale import linear
from minutewheel.loadtest.report import Process, Report, Series

pytestmark = pytest.mark.pure


def series(name: str, unit: str = "ms", values: tuple[float | None, ...] = (1.0,), step_ms: int = 1_000) -> Series:
    return Series(name=name, unit=unit, step_ms=step_ms, values=values)


def test_lines_of_one_unit_share_a_chart_as_long_as_they_can_be_told_apart() -> None:
    many = [series(f"late {index}") for index in range(LINES_MAX + 1)]
    told = groups([*many, series("fired", "tasks/s")])
    assert [len(lines) for lines in told] == [LINES_MAX, 1, 1]
    assert [line for lines in told for line in lines if line.unit == "ms"] == many


def test_a_line_is_broken_where_nothing_was_measured_and_a_lone_point_is_a_dot(full_report: Report) -> None:
    course, axis = course_of(full_report), linear(0, 100, str)
    points = [(0, 0.0), (1, 100.0), None, (3, 50.0)]
    assert path_of(points, 300_000, course, axis) == "M125 1000h0L375 0M875 500h0"


def test_a_chart_has_its_name_its_legend_and_its_numbers(full_report: Report) -> None:
    told = lines_chart(full_report.series[:3], course_of(full_report))
    assert "<h3>Lateness over time</h3>" in told
    assert [told.count(f'class="line l{index}"') for index in range(4)] == [2, 2, 2, 0], "the legend's, and the line"
    assert '<th scope="row">p99</th>' in told
    assert "1,200 steps of 1 s are drawn in columns of 3 s: the least and the largest value of each" in told
    assert told.count('class="fault"') == len(full_report.bands)


def test_a_chart_that_is_not_thinned_does_not_say_so(full_report: Report) -> None:
    assert "columns" not in lines_chart([series("a")], course_of(full_report))


def test_a_line_without_a_value_is_said_to_be_so(full_report: Report) -> None:
    told = lines_chart([series("none", values=(None, None))], course_of(full_report))
    assert "none from nothing measured" in told
    assert '<th scope="row">none</th><td>–</td>' in told


def test_lateness_may_be_on_a_logarithmic_scale_and_nothing_else() -> None:
    values = [1.0, 1.0, 1.0, 10_000.0]
    assert axis_of(values, "ms").note
    assert not axis_of(values, "tasks/s").note
    assert axis_of([], "tasks/s").place(0) == 0


def test_processes_are_on_one_scale_and_what_was_not_measured_is_said(full_report: Report) -> None:
    small = Process(name="small", step_ms=1_000, cpu_percent=(1.0,), memory_mib=())
    large = Process(name="large", step_ms=1_000, cpu_percent=(150.0,), memory_mib=(80.0,))
    told = process_chart([small, large], small, course_of(full_report))
    assert ">150 %<" in told
    assert "CPU: mean 1 %, most 1 %" in told
    assert "Memory: not measured" in told
