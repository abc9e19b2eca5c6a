"""Which report does a saved file hold? Either the one form of all load tests, or a day's own, which becomes it."""

from collections.abc import Iterator

import msgspec

from .day import DayReport
from .day_report import of_day
from .report import Report

SHARDS_MAX = 1_024
VALUE_MAX = 1e15
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
    if any(abs(value) > VALUE_MAX for value in _values(report)):
        yield f"a value is beyond {VALUE_MAX:g}"
    if any(not 0 <= percentage <= 100 for percentage, _ in report.lateness.percentiles_ms):
        yield "a percentile is not from 0 to 100"
    if report.duration_ms < 0:
        yield "the run lasted less than no time"


def _values(report: Report) -> Iterator[float]:
    """All that is measured along an axis."""
    yield report.duration_ms
    yield report.core_s_per_million or 0
    yield from (ms for _, ms in report.lateness.percentiles_ms)
    yield from (ms for band in report.bands for ms in (band.from_ms, band.to_ms))
    yield from (ms for tenure in report.tenures for ms in (tenure.from_ms, tenure.to_ms))
    lines = [one.values for one in report.series]
    lines += [values for one in report.processes for values in (one.cpu_percent, one.memory_mib)]
    yield from (value for values in lines for value in values if value is not None)
    if report.heat:
        yield report.heat.first_minute
        yield from (count for row in report.heat.fired for count in row)
