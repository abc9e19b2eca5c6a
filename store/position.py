"""Where does a record stand in a log, and which number does the filing get that it causes?

A *position* is one integer of 61 bits: the topic's incarnation (7 bits, it rises when a topic is made anew), the
record's offset (40) and the index in a batch record (14). Positions of one log compare as the records stand in it.
A *filing* is a position with the log's number (2 bits) above it: 63 bits, one signed `bigint`. So whoever applies a
record, once or again, gives its filing the same number, and `position_of(filing)` says what caused it.

    bit   62 61 | 60 ... 54   | 53 ... 14 | 13 ... 0
          log   | incarnation | offset    | index
"""

from enum import IntEnum
from typing import NamedTuple

INDEX_BITS = 14
OFFSET_BITS = 40
INCARNATION_BITS = 7
POSITION_BITS = INDEX_BITS + OFFSET_BITS + INCARNATION_BITS
POSITION_MASK = (1 << POSITION_BITS) - 1
INDEX_LIMIT = 1 << INDEX_BITS
OFFSET_LIMIT = 1 << OFFSET_BITS
INCARNATION_LIMIT = 1 << INCARNATION_BITS
NO_POSITION = -1
"""At or below no record: the place of a log of which nothing was applied to a row."""


class Log(IntEnum):
    """The logs through which all that concerns a shard's tasks reaches its owner."""

    SUBMIT = 0
    FORWARDED = 1
    OUTCOMES = 2


class Place(NamedTuple):
    """A position taken apart."""

    incarnation: int
    offset: int
    item: int


def pack_position(incarnation: int, offset: int, index: int = 0) -> int:
    """Raise `OverflowError` for what does not fit; such a record is refused at the door."""
    if not (0 <= incarnation < INCARNATION_LIMIT and 0 <= offset < OFFSET_LIMIT and 0 <= index < INDEX_LIMIT):
        raise OverflowError(f"no position for incarnation {incarnation}, offset {offset}, index {index}")
    return incarnation << (OFFSET_BITS + INDEX_BITS) | offset << INDEX_BITS | index


def unpack_position(position: int) -> Place:
    return Place(
        position >> (OFFSET_BITS + INDEX_BITS),
        position >> INDEX_BITS & (OFFSET_LIMIT - 1),
        position & (INDEX_LIMIT - 1),
    )


def filing_number(log: Log, position: int) -> int:
    return log << POSITION_BITS | position


def log_of(filing: int) -> Log:
    return Log(filing >> POSITION_BITS)


def position_of(filing: int) -> int:
    return filing & POSITION_MASK


def write_timestamp(fence: int, count: int) -> int:
    """The timestamp of a plain write: the fence is its high half, so a stale owner never outranks its successor."""
    assert 0 < fence < 1 << 31, fence
    assert 0 <= count < 1 << 31, count
    return fence << 32 | count
