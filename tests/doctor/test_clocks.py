import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.doctor.clocks import TOLERANCE_MS, Reading, clock_findings

pytestmark = pytest.mark.pure

MS = st.integers(0, 10**7)


@given(MS, MS, st.integers(-(10**6), 10**6), st.floats(0, 1))
def test_the_skew_is_never_overstated(before_ms: int, took_ms: int, skew_ms: int, part: float) -> None:
    """Whenever in between their clock was read: what is said is at most what is so."""
    theirs_ms = before_ms + int(took_ms * part) + skew_ms
    said_ms = Reading(before_ms, theirs_ms, before_ms + took_ms).skew_ms()
    assert said_ms == 0 or (said_ms > 0) == (skew_ms > 0)
    assert abs(said_ms) <= abs(skew_ms)


@given(MS, st.integers(-(10**6), 10**6))
def test_an_answer_at_once_is_exact(before_ms: int, skew_ms: int) -> None:
    assert Reading(before_ms, before_ms + skew_ms, before_ms).skew_ms() == skew_ms


def test_a_finding_says_which_way() -> None:
    assert clock_findings("kafka", Reading(0, TOLERANCE_MS, 0)) == []
    (ahead,) = clock_findings("kafka", Reading(0, 60_000, 10))
    assert (ahead.service, ahead.code) == ("kafka", "clock")
    assert "59990 ms ahead" in ahead.what
    (behind,) = clock_findings("kafka", Reading(60_000, 0, 60_010))
    assert "60000 ms behind" in behind.what
