import pytest
from minutewheel.loadtest.page.percentiles import percentiles_chart
from minutewheel.loadtest.report import Lateness

pytestmark = pytest.mark.pure


def test_each_percentile_is_a_dot_and_a_number() -> None:
    told = percentiles_chart(Lateness(percentiles_ms=((100, 9_000), (50, 12), (99.99, 4_100))))
    assert told.count('class="dot"') == 3
    for text in ("50 %</th>", "99.99 %</th>", "max</th>", "<td>12 ms</td><td>4.1 s</td><td>9 s</td>"):
        assert text in told
    assert "50 %: 12 ms, 99.99 %: 4.1 s, max: 9 s" in told, "for who does not see it"


def test_the_scale_of_lateness_is_logarithmic_however_near_the_values_are() -> None:
    told = percentiles_chart(Lateness(percentiles_ms=((50, 0), (99, 10), (100, 20))))
    assert "logarithmic" in told
    assert [text in told for text in (">10 ms<", ">100 ms<")] == [True, True]
    assert 'class="dot" style="left:40.00%;bottom:0.00%"' in told
    assert 'class="dot" style="left:100.00%;bottom:30.10%"' in told


def test_a_run_in_which_nothing_was_late_is_drawn_too() -> None:
    assert "<td>0 ms</td>" in percentiles_chart(Lateness(percentiles_ms=((50, 0), (100, 0))))
