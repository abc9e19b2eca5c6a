"""Which instant does a submitted time mean?

Two spellings: RFC 3339 with an offset, and whole milliseconds since 1970. Whatever could be read in two ways is
refused, with a hint: a time without an offset, ISO week dates, a space for the `T`, a leap second, an integer that
looks like seconds. Digits beyond the millisecond are cut, never rounded, for rounding can move a task into the next
minute. Libraries differ in all of these (one rounds, one cuts, one reads week dates), hence the forty lines.
"""

import re
from datetime import date

from .command import Code, InvalidTask

LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""
SECONDS_BELOW = 100_000_000_000
"""Integers below are refused: as milliseconds they would lie before March 1973, as seconds before the year 5138."""

EPOCH_DAY = date(1970, 1, 1).toordinal()
TEXT_MAX = 64
RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]"
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def time_ms(value: int | str, field: str = "due") -> int:
    """The instant in ms since 1970; `InvalidTask` (bad_due, due_in_seconds) for what is none, naming the field."""
    if isinstance(value, str):
        return in_range(parse_rfc3339(value, field), field)
    if 0 <= value < SECONDS_BELOW:
        raise InvalidTask(Code.DUE_IN_SECONDS, f"{field} {value} looks like seconds: integers are ms since 1970", field)
    return in_range(value, field)


def in_range(value_ms: int, field: str = "due") -> int:
    """The same, if it lies in the years 1970 to 9999."""
    if value_ms < 0:
        raise InvalidTask(Code.BAD_DUE, f"{field} lies before 1970", field)
    if value_ms > LAST_MS:
        raise InvalidTask(
            Code.BAD_DUE, f"{field} lies after the year 9999 (integers are ms since 1970, not µs or ns)", field
        )
    return value_ms


def parse_rfc3339(text: str, field: str = "due") -> int:
    """Milliseconds since 1970, negative before, of an RFC 3339 time of any year from 1 to 9999."""
    match = RFC3339.fullmatch(text) if len(text) <= TEXT_MAX else None
    if match is None:
        raise InvalidTask(Code.BAD_DUE, f"{field} is not RFC 3339 with an offset: 2026-12-01T09:00:00Z", field)
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - EPOCH_DAY
    except ValueError as error:
        raise InvalidTask(Code.BAD_DUE, f"{field}: {error}", field) from None
    minutes = _clock(hour, minute, field)
    if sign is not None:
        offset = _clock(offset_hour, offset_minute, field)
        minutes -= offset if sign == "+" else -offset
    return ((days * 1440 + minutes) * 60 + _second(second, field)) * 1000 + int(f"{fraction or ''}000"[:3])


def _clock(hour: str, minute: str, field: str) -> int:
    hours, minutes = int(hour), int(minute)
    if hours > 23 or minutes > 59:
        raise InvalidTask(Code.BAD_DUE, f"{field}: there is no {hour}:{minute}", field)
    return hours * 60 + minutes


def _second(second: str, field: str) -> int:
    if second == "60":
        raise InvalidTask(Code.BAD_DUE, f"{field} is a leap second, which has no number of ms: give :59 or :00", field)
    seconds = int(second)
    if seconds > 59:
        raise InvalidTask(Code.BAD_DUE, f"{field}: there is no second {second}", field)
    return seconds
