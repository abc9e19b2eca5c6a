from typing import Any

import msgspec
import pytest
from minutewheel.loadtest.report import Counts, Heat, Lateness, Process, Report, Series, Tenure
from minutewheel.loadtest.saved import NotAReport, report_of

pytestmark = pytest.mark.pure

REPORT = Report(
    kind="a kind",
    profile="day",
    seed=1,
    command="a command",
    version="0.1.0",
    started_ms=1,
    duration_ms=1_000,
    complete=True,
    counts=Counts(fired=3),
    lateness=Lateness(percentiles_ms=((50, 1), (100, 2))),
    series=(Series(name="late", unit="ms", step_ms=1_000, values=(1.5, None)),),
)


def test_a_report_is_read_as_it_was_written() -> None:
    assert report_of(msgspec.json.encode(REPORT)) == REPORT


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"kind": 3}', b"\xff", b"null", b'{"tally": {}}', b"<html>"])
def test_what_is_no_report_is_refused_in_one_line(text: bytes) -> None:
    with pytest.raises(NotAReport) as refused:
        report_of(text)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"series": (Series(name="late", unit="ms", step_ms=0, values=()),)}, "'late' has steps of 0 ms"),
        ({"processes": (Process(name="p", step_ms=-1, cpu_percent=(), memory_mib=()),)}, "'p' has steps of -1 ms"),
        ({"series": (Series(name="late", unit="ms", step_ms=1, values=(1e300,)),)}, "beyond"),
        ({"heat": Heat(first_minute=1, fired=((1, 2), (3,)))}, "different numbers of shards"),
        ({"heat": Heat(first_minute=1, fired=())}, "or there are none"),
        ({"heat": Heat(first_minute=1, fired=((),))}, "no shards"),
        ({"heat": Heat(first_minute=1, fired=((-1,),))}, "below zero"),
        ({"tenures": (Tenure(shard=10**9, member="m", from_ms=0, to_ms=1),)}, "owned shard"),
        ({"lateness": Lateness(percentiles_ms=((101, 1),))}, "percentile"),
        ({"duration_ms": -1}, "no time"),
    ],
)
def test_what_no_chart_can_be_drawn_of_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(NotAReport, match=why):
        report_of(msgspec.json.encode(msgspec.structs.replace(REPORT, **changes)))
