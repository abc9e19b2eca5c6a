"""Which report does a saved file hold? Either the one form of all load tests, or a day's own, which becomes it."""

from collections.abc import Iterator

import msgspec

from .day import DayReport
from .day_report import of_day
from .report import Report

SHARDS_MAX = 1_024
UNKNOWN = "not in the file"


class NotAReport(Exception):
    """What was read is no load test's report, and why."""


def report_of(text: bytes) -> Report:
    """`NotAReport` says in one line what is wrong."""
    try:
        report = _decoded(text)
    except msgspec.DecodeError as error:
        raise NotAReport(str(error)) from None
    for fault in _faults(report):
        raise NotAReport(fault)
    return report


def _decoded(text: bytes) -> Report:
    plain = msgspec.json.decode(text)
    if isinstance(plain, dict) and "tally" in plain:
        return of_day(msgspec.convert(plain, DayReport), UNKNOWN, UNKNOWN)
    return msgspec.convert(plain, Report)


def _faults(report: Report) -> Iterator[str]:
    """What the types allow, and no chart can be drawn of."""
    steps = [(one.name, one.step_ms) for one in report.series]
    for name, step_ms in [*steps, *((one.name, one.step_ms) for one in report.processes)]:
        if step_ms < 1:
            yield f"{name!r} has steps of {step_ms} ms"
    if report.heat and (not report.heat.fired or len({len(row) for row in report.heat.fired}) != 1):
        yield "the minutes of the heat map have different numbers of shards, or there are none"
    if report.heat and not report.heat.fired[0]:
        yield "the heat map has no shards"
    if report.heat and any(count < 0 for row in report.heat.fired for count in row):
        yield "the heat map has a count below zero"
    if any(one.shard < 0 or one.shard >= SHARDS_MAX for one in report.tenures):
        yield f"an owned shard is not from 0 to {SHARDS_MAX - 1}"
    if report.duration_ms < 0:
        yield "the run lasted less than no time"
