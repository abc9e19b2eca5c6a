"""Cases 19 and 54: what a submitted time means, and what is refused rather than guessed."""

import contextlib
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import Code, InvalidTask
from minutewheel.broker.due_time import LAST_MS, parse_rfc3339, time_ms

pytestmark = pytest.mark.pure


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, ms: int = 0) -> int:
    instant = datetime(year, month, day, hour, minute, second, ms * 1000, tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01T09:00:00Z", at(2026, 12, 1, 9)),
        ("2026-12-01t09:00:00z", at(2026, 12, 1, 9)),
        ("2026-01-01T00:00:00+05:30", at(2025, 12, 31, 18, 30)),
        ("2026-01-01T00:00:00-05:30", at(2026, 1, 1, 5, 30)),
        ("2026-01-01T00:00:00-00:00", at(2026, 1, 1)),
        ("2024-02-29T12:00:00.5Z", at(2024, 2, 29, 12, 0, 0, 500)),
        ("2026-01-01T00:00:00.0019Z", at(2026, 1, 1, 0, 0, 0, 1)),
        ("2026-01-01T00:59:59.9999996Z", at(2026, 1, 1, 0, 59, 59, 999)),
        ("1970-01-01T00:00:00Z", 0),
        ("2038-01-19T03:14:08Z", 2**31 * 1000),
        ("2100-01-01T00:00:00Z", at(2100, 1, 1)),
        ("2262-04-12T00:00:00Z", at(2262, 4, 12)),
        ("9999-12-31T23:59:59Z", LAST_MS - 999),
        ("9999-12-31T23:59:59.999Z", LAST_MS),
    ],
)
def test_good_times(text: str, expected: int) -> None:
    assert time_ms(text) == expected


def test_digits_beyond_the_millisecond_never_move_a_task_into_the_next_minute() -> None:
    assert time_ms("2026-01-01T00:59:59.9999996Z") // 60_000 == at(2026, 1, 1, 0, 59) // 60_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00Z",
        "2026-W01-1T00:00:00Z",
        "2026-001T00:00:00Z",
        "20260101T000000Z",
        "2016-12-31T23:59:60Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:61Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-01-01T00:00:00+99:00",
        "2026-01-01T00:00:00+05:60",
        "2026-01-01T00:00:00+0530",
        "2026-01-01T00:00:00,5Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00Z\n",
        " 2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z[Europe/Berlin]",
        "\uff12\uff10\uff12\uff16-01-01T00:00:00Z",
        "-2026-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "2026-01-01T00:00:00.0" + "0" * 100 + "Z",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
        "1969-12-31T23:59:59.999Z",
        "1796115600000",
        "Infinity",
        "NaN",
        "1e400",
    ],
)
def test_refused_texts(text: str) -> None:
    with pytest.raises(InvalidTask) as raised:
        time_ms(text)
    assert raised.value.code is Code.BAD_DUE
    assert raised.value.field == "due"


@pytest.mark.parametrize("value", [0, 1, 1_767_225_600, 99_999_999_999])
def test_what_looks_like_seconds_is_refused_with_a_hint(value: int) -> None:
    with pytest.raises(InvalidTask, match="ms since 1970") as raised:
        time_ms(value)
    assert raised.value.code is Code.DUE_IN_SECONDS


@pytest.mark.parametrize("value", [-1, -(10**30), 2**53 + 1, 2**63, LAST_MS + 1, 10**26, 1_767_225_600_000_000])
def test_what_no_year_has_is_refused(value: int) -> None:
    with pytest.raises(InvalidTask) as raised:
        time_ms(value)
    assert raised.value.code is Code.BAD_DUE


@pytest.mark.parametrize("value", [100_000_000_000, 1_796_115_600_000, LAST_MS])
def test_good_integers(value: int) -> None:
    assert time_ms(value) == value


@given(
    st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9999, 12, 30)),  # noqa: DTZ001 - zone drawn apart
    st.integers(-1439, 1439),
)
def test_any_time_in_any_zone_is_what_datetime_says_cut_to_ms(naive: datetime, offset_minutes: int) -> None:
    instant = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    expected = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse_rfc3339(instant.isoformat(timespec="microseconds")) == expected


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidTask):
        assert isinstance(parse_rfc3339(text), int)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_the_zone_of_the_process_does_not_count(zone: str) -> None:
    code = (
        "from minutewheel.broker.due_time import time_ms\n"
        "print(time_ms('2026-03-08T02:30:00-05:00'))\n"
        "try: time_ms('2026-03-08T02:30:00')\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TZ": zone}, capture_output=True, text=True, check=True
    )
    printed = done.stdout.splitlines()
    assert int(printed[0]) == at(2026, 3, 8, 7, 30)
    assert "RFC 3339 with an offset" in printed[1]
