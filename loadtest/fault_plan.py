"""Which process is to fail in a run, how, and when?

A plan is JSON, a list of faults:

    [{"at": "10s", "do": "kill",  "what": "dispatcher", "which": 0},
     {"at": "20s", "do": "pause", "what": "worker", "which": 1, "for": "5s"},
     {"at": "30s", "do": "stop",  "what": "dispatcher", "for": "2s"}]

`kill` ends a process at once (SIGKILL) and `stop` tells it to end (SIGTERM); another takes its place after `for`, or at
once. `pause` makes it stand still for so long (SIGSTOP, then SIGCONT). `at` counts from the begin of the load.

Pure: what makes no sense is refused before anything starts, with a line that names the fault, from 1, and the field.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Literal, NoReturn

import msgspec
from msgspec import Struct

Do = Literal["kill", "stop", "pause"]
What = Literal["dispatcher", "worker"]
FAULTS_MAX = 1_000


class BadPlan(Exception):
    """The plan makes no sense, in one line."""


class Fault(Struct, frozen=True, kw_only=True):
    """One fault, in milliseconds from the begin of the load."""

    at_ms: int
    do: Do
    what: What
    which: int
    for_ms: int

    @property
    def whom(self) -> str:
        return f"{self.what} {self.which}"


class _Line(Struct, frozen=True, forbid_unknown_fields=True, rename={"for_": "for"}):
    """A fault as it is written."""

    at: str
    do: Do
    what: What
    which: int = 0
    for_: str | None = None


def parse_plan(
    text: bytes, numbers: Mapping[What, int], length_ms: int, read_ms: Callable[[str], int]
) -> tuple[Fault, ...]:
    """The faults in their order; `BadPlan`. There are so many (`numbers`) of each kind of process.

    `read_ms` reads a length of time, and raises `ValueError` for what is none.
    """
    try:
        lines = msgspec.json.decode(text, type=list[Any])
    except msgspec.MsgspecError as error:
        raise BadPlan(f"a plan of faults is a list in JSON: {error}") from None
    if len(lines) > FAULTS_MAX:
        raise BadPlan(f"a plan has at most {FAULTS_MAX:,} faults, not {len(lines):,}")
    numbered = [(number, _fault(number, line, numbers, length_ms, read_ms)) for number, line in enumerate(lines, 1)]
    numbered.sort(key=lambda pair: pair[1].at_ms)
    _check_apart(numbered)
    return tuple(fault for _, fault in numbered)


def _fault(
    number: int, line: object, numbers: Mapping[What, int], length_ms: int, read_ms: Callable[[str], int]
) -> Fault:
    try:
        read = msgspec.convert(line, _Line)
    except msgspec.ValidationError as error:
        raise BadPlan(f"fault {number}: {_where(str(error))}") from None
    if not 0 <= read.which < numbers[read.what]:
        _refuse(number, "which", f"there are {numbers[read.what]} {read.what}s, numbered from 0, so no {read.which}")
    at_ms = _length(number, "at", read.at, read_ms)
    if at_ms >= length_ms:
        _refuse(number, "at", f"{read.at} is not within the length of the load")
    if read.do == "pause" and read.for_ is None:
        _refuse(number, "for", "a pause needs it: how long?")
    for_ms = 0 if read.for_ is None else _length(number, "for", read.for_, read_ms)
    if read.do == "pause" and not for_ms:
        _refuse(number, "for", "a pause takes longer than nothing")
    return Fault(at_ms=at_ms, do=read.do, what=read.what, which=read.which, for_ms=for_ms)


def _check_apart(numbered: list[tuple[int, Fault]]) -> None:
    """No process is struck while it is still down from before, nor twice at once."""
    for whom in {fault.whom for _, fault in numbered}:
        its = [(number, fault) for number, fault in numbered if fault.whom == whom]
        for (earlier, one), (number, other) in pairwise(its):
            if other.at_ms == one.at_ms or other.at_ms < one.at_ms + one.for_ms:
                _refuse(number, "at", f"fault {earlier} still has {whom} then")


def _length(number: int, field: str, text: str, read_ms: Callable[[str], int]) -> int:
    try:
        return read_ms(text)
    except ValueError as error:
        _refuse(number, field, str(error))


def _where(told: str) -> str:
    """What msgspec says of a value, with the field first where there is one."""
    what, at, path = told.partition(" - at `$.")
    return f"{path.rstrip('`')}: {what}" if at else told


def _refuse(number: int, field: str, why: str) -> NoReturn:
    raise BadPlan(f"fault {number}: {field}: {why}")
