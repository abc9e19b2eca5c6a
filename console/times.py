"""How are times written and read on the command line?

A length of time is a number with a unit, or several (`90s`, `1h30m`, `250ms`). A moment is RFC 3339 with an offset
(`2026-12-01T09:00:00Z`), as in submissions. A minute is a moment in it, its number, or `now`. Pure.
"""

import re
from datetime import UTC, datetime, timedelta

from .exits import ExitCode, Failure

UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MINUTE_MS = 60_000
PART = r"([0-9]{1,15})(ms|s|m|h|d)"
LENGTH = re.compile(f"(?:{PART})+")
MINUTE_NUMBER = re.compile(r"[0-9]{1,10}")
SECONDLESS = re.compile(r"([Tt][0-9]{2}:[0-9]{2})([Zz]|[+-][0-9]{2}:[0-9]{2})$")
LONGEST_MS = 8_000 * 366 * 86_400_000


def length_ms(text: str) -> int:
    """`Failure` for what is no length of time."""
    if LENGTH.fullmatch(text) is None:
        raise Failure(f"{text!r} is no length of time: write 250ms, 5s, 1h30m, 2d", ExitCode.USAGE)
    total = sum(int(number) * UNIT_MS[unit] for number, unit in re.findall(PART, text))
    if total > LONGEST_MS:
        raise Failure(f"{text!r} is longer than eight thousand years", ExitCode.USAGE)
    return total


def length(text: str | None) -> timedelta | None:
    return None if text is None else timedelta(milliseconds=length_ms(text))


def minute(text: str, now_ms: int) -> int:
    """The minute that is meant; `Failure` for what is none."""
    if text == "now":
        return now_ms // MINUTE_MS
    if MINUTE_NUMBER.fullmatch(text):
        return int(text)
    from ..broker.command import InvalidTask
    from ..broker.due_time import time_ms

    try:
        return time_ms(SECONDLESS.sub(r"\1:00\2", text), "minute") // MINUTE_MS
    except InvalidTask as error:
        raise Failure(f"{error.message} (or a minute's number, or now)", ExitCode.USAGE) from None


def moment(ms: int) -> str:
    """A time in UTC, to the millisecond."""
    try:
        text = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"{ms} ms"
    return text.replace("+00:00", "Z")


def minute_text(number: int) -> str:
    """A minute as its first moment, without seconds."""
    return moment(number * MINUTE_MS).replace(":00.000Z", "Z")
