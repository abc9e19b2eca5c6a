"""What has the owner of a shard finished, and what does it write down of it?

The *journal* of a minute is the set of marks made in it: filings fired or removed. Waiting = rows − marks. A
*checkpoint* is the fenced write of new marks, log positions and closed minutes; it is conditional on the stored
fence and nothing else, so it may be repeated. A *reign* is one ownership of the shard; its *ends* say how far it
got in each log, which tells its true bucket rows from those of a stale owner (DESIGN rule V).
"""

from collections.abc import Collection
from struct import pack, unpack

from msgspec import Struct, field

Offsets = tuple[int, int, int]
"""For submit, forwarded and outcomes: the position below which all delivered records are applied."""


class Marks(Struct, gc=False):
    """The journal of one minute, as sets of filings."""

    fired: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)

    def __contains__(self, filing: int) -> bool:
        return filing in self.fired or filing in self.removed

    def __len__(self) -> int:
        return len(self.fired) + len(self.removed)


class NewMarks(Struct, frozen=True, gc=False):
    """The marks that one checkpoint adds to a minute."""

    minute: int
    fired: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


class Progress(Struct, gc=False):
    """A shard's progress as a claim or a serial read finds it.

    `closed` are the closed minutes at or above `open_minute`, the lowest minute that is not closed, and
    all up to `dropped_minute` are dropped;
    `marks` those of the open minutes up to the one asked for; `pieces` the number of pieces of each minute that
    has more than one; `last_checkpoint` the number of the last checkpoint written (see `Checkpoint.number`).
    """

    shard: int
    fence: int
    member: str
    open_minute: int
    dropped_minute: int
    offsets: Offsets
    last_checkpoint: int = -1
    closed: set[int] = field(default_factory=set)
    marks: dict[int, Marks] = field(default_factory=dict)
    pieces: dict[int, int] = field(default_factory=dict)
    reigns: dict[int, Offsets] = field(default_factory=dict)


class Checkpoint(Struct, frozen=True, gc=False):
    """One fenced write of progress. `number` is unique over all reigns (fence << 32 | count) and makes the write
    idempotent: the same number again changes nothing that the first did not.

    For each minute in `closed` the marks give way to one closed row; `open_minute`, `dropped_minute` and
    `offsets` never go back.
    """

    number: int
    offsets: Offsets
    open_minute: int
    dropped_minute: int
    marks: tuple[NewMarks, ...] = ()
    closed: tuple[int, ...] = ()
    pieces: tuple[tuple[int, int], ...] = ()


class Closing(Struct, frozen=True, gc=False):
    """The closing record of a minute: what `audit` reads after its bucket is gone.

    `digest` is the XOR of a 64-bit mix of its filings (see `mix`), `late` counts those fired over a second late.
    """

    minute: int
    rows: int
    fired: int
    removed: int
    late: int
    digest: int


def mix(filing: int) -> int:
    """Spread a filing over 64 bits, so that an XOR over a set of them tells sets apart (the finalizer of SplitMix64,
    Steele, Lea and Flood, OOPSLA 2014)."""
    mask = (1 << 64) - 1
    filing = (filing ^ filing >> 30) * 0xBF58476D1CE4E5B9 & mask
    filing = (filing ^ filing >> 27) * 0x94D049BB133111EB & mask
    return filing ^ filing >> 31


def pack_filings(filings: Collection[int]) -> bytes:
    """Marks as every store keeps them: 8 bytes a filing, little-endian."""
    return pack(f"<{len(filings)}q", *filings)


def unpack_filings(data: bytes) -> tuple[int, ...]:
    return unpack(f"<{len(data) // 8}q", data)
