from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.console.times import length, length_ms, minute, minute_text, moment

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250ms", 250), ("5s", 5_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("0s", 0), ("1m1ms", 60_001)],
)
def test_lengths(text: str, ms: int) -> None:
    assert length_ms(text) == ms
    assert length(text) == timedelta(milliseconds=ms)


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5 s", "1.5h", "5s\n", "\u0665s", "9" * 15 + "d", "5sx"])
def test_what_is_no_length_is_a_matter_of_usage(text: str) -> None:
    with pytest.raises(Failure) as refused:
        length_ms(text)
    assert refused.value.code is ExitCode.USAGE


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds are naive
def test_a_moment_reads_back(time: datetime) -> None:
    ms = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert datetime.fromisoformat(moment(ms)) == time.replace(microsecond=time.microsecond // 1000 * 1000)
    assert minute(moment(ms), 0) == ms // 60_000
    assert minute(minute_text(ms // 60_000), 0) == ms // 60_000


def test_a_minute_in_three_ways() -> None:
    assert minute("now", 61_000) == 1
    assert minute("29933161", 0) == 29_933_161
    assert minute("1970-01-01T01:01:59+01:00", 0) == 1
    assert moment(1 << 60) == f"{1 << 60} ms"
    for text in ("yesterday", "1970-01-01T00:01:00", "-1"):
        with pytest.raises(Failure):
            minute(text, 0)
