import re

import msgspec
import pytest
from minutewheel.loadtest.page import frame
from minutewheel.loadtest.page.scale import linear
from minutewheel.loadtest.report import Band, Report

pytestmark = pytest.mark.pure


def course(report: Report, *bands: Band) -> frame.Course:
    return frame.course_of(msgspec.structs.replace(report, bands=bands))


def band(from_ms: int, to_ms: int, what: str = "kill") -> Band:
    return Band(what=what, whom="one", from_ms=from_ms, to_ms=to_ms)


def test_all_charts_over_time_are_as_long_as_what_is_known(full_report: Report) -> None:
    assert course(full_report).end_ms == 1_200_000
    assert course(full_report, band(0, 2_400_000)).end_ms == 2_400_000
    assert course(full_report, band(0, 2_400_000)).x(1_200_000) == 500


def test_a_fault_is_a_tint_between_two_edges(full_report: Report) -> None:
    drawn = frame.faults(course(full_report, band(300_000, 600_000)))
    assert '<rect x="250" y="0" width="250" height="1000" class="fault">' in drawn
    assert 'd="M250 0V1000M500 0V1000" class="edge"' in drawn
    assert "<rect" not in frame.faults(course(full_report, band(300_000, 600_000)), tint=False)


def test_a_fault_of_an_instant_is_seen(full_report: Report) -> None:
    assert 'width="1"' in frame.faults(course(full_report, band(300_000, 300_000)))


def test_labels_of_faults_do_not_overlap_nor_leave_the_chart(full_report: Report) -> None:
    many = [band(at * 1_200, 1_200_000, "a rather long name of a fault") for at in range(0, 1_000, 20)]
    told = frame.chips(course(full_report, *many))
    assert told
    places = re.findall(r'<span class="chip[^"]*" style="left:([\d.]+)%;top:(\d+)px"><b>\d+</b>(<span)?', told)
    assert len(places) > 20
    rows: dict[str, float] = {}
    for left, top, word in places:
        wide = frame.CHIP_PIXELS + (len(many[0].what) * frame.LETTER_PIXELS if word else 0)
        assert float(left) >= rows.get(top, 0) - 0.02
        rows[top] = float(left) + 100 * wide / frame.PIXELS
        assert rows[top] <= 100.1


def test_faults_are_numbered_in_the_order_of_time(full_report: Report) -> None:
    told = frame.chips(course(full_report, band(600_000, 700_000, "second"), band(0, 10, "first")))
    assert told
    assert "<b>1</b>" in told.partition("first")[0]
    assert "<b>2</b>" not in told.partition("first")[0]
    assert frame.chips(course(full_report)) is None


def test_a_drawing_is_described_and_its_labels_are_text_beside_it(full_report: Report) -> None:
    drawing = frame.area("A <title>", "what it shows")
    assert "<title>A &lt;title&gt;</title><desc>what it shows</desc>" in drawing
    assert 'role="img"' in drawing
    axis = linear(0, 100, str)
    told = frame.framed(drawing, 100, course(full_report).axis, axis)
    assert '<span class="y" style="bottom:100.00%">100.0</span>' in told
    assert '<span class="x" style="left:0.00%">0:00</span>' in told
    assert frame.grid(axis, axis).count("H1000") == len(axis.ticks)
