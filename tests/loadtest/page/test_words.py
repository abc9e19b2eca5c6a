import msgspec
import pytest
from minutewheel.loadtest.page import words
from minutewheel.loadtest.report import Counts, Report

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("counts", "complete", "tone", "text"),
    [
        (Counts(fired=9), True, "good", "Nothing lost, none early, none twice."),
        (Counts(fired=9), False, "open", "Nothing lost, none early, none twice."),
        (Counts(fired=9, lost=3), True, "bad", "3 tasks lost."),
        (Counts(fired=9, duplicated=1), True, "bad", "1 task fired more than once."),
        (Counts(fired=9, early=2_000), True, "bad", "2,000 tasks fired early."),
        (
            Counts(fired=9, lost=3, duplicated=1, early=2),
            True,
            "bad",
            "3 tasks lost, 1 task fired more than once and 2 tasks fired early.",
        ),
        (Counts(lost=3), False, "bad", "3 tasks lost."),
        (Counts(), True, "open", "No task fired, so there is nothing to judge."),
    ],
)
def test_the_verdict_says_what_went_wrong(
    full_report: Report, counts: Counts, complete: bool, tone: str, text: str
) -> None:
    verdict = words.verdict_of(msgspec.structs.replace(full_report, counts=counts, complete=complete))
    assert (verdict.tone, verdict.text) == (tone, text)
    assert verdict.more.startswith("Incomplete") == (not complete)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (80, "80 ms"),
        (2_500, "2.5 s"),
        (200_000, "3 min 20 s"),
        (59_999, "60 s"),
        (86_400_000, "24 h"),
        (3_661_000, "1 h 1 min 1 s"),
    ],
)
def test_a_length_of_time_is_short(ms: int, text: str) -> None:
    assert words.lasting(ms) == text


def test_numbers_and_their_units() -> None:
    assert [words.number(one) for one in (0, 12, 0.1234, 1234567, 1234.5)] == ["0", "12", "0.123", "1,234,567", "1,234"]
    assert [words.compact(one) for one in (12, 1_500, 2e6, 3.25e9)] == ["12", "1.5 k", "2 M", "3.25 G"]
    assert [words.measure(one, "MiB") for one in (None, 3.0)] == ["–", "3 MiB"]
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.percent(99.99) == "99.99 %"
    assert words.percent(100) == "max"


def test_times() -> None:
    assert words.moment(1_790_000_000_000) == "2026-09-21 14:13:20 UTC"
    assert words.moment(10**30) == f"{10**30} ms", "what no calendar holds"
    assert words.elapsed(5_400_000, 60_000) == "1:30"
    assert words.elapsed(65_000, 5_000) == "0:01:05"
    assert words.elapsed(500, 100) == "0.5 s"
