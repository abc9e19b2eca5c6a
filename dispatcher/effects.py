"""What does a shard ask the world to do for it, and what comes back?

Each effect is one call to a port; the shell performs it and hands the answer back to the shard (`Shard.resume`).
An effect that did not go well comes back as `Failed`. All of them may be performed again, for plain writes carry
their timestamp, checkpoints their number, and messages may be repeated.
"""

from collections.abc import Sequence

from msgspec import Struct

from ..broker.wire import Message
from ..store.port import Place
from ..store.progress import Checkpoint, Closing
from ..store.task import PlainRow


class Claim(Struct, frozen=True, gc=False):
    """Raise the stored fence. Answer: `Progress`."""

    fence: int
    member: str
    marks_up_to: int


class ReadEnds(Struct, frozen=True, gc=False):
    """Where do the shard's three logs end? Answer: `Offsets`, as positions."""


class LookUp(Struct, frozen=True, gc=False):
    """Read task rows. Answer: list of `TaskRow`."""

    keys: Sequence[str]


class ReadFilings(Struct, frozen=True, gc=False):
    """Read single bucket rows. Answer: list of `BucketRow`."""

    places: Sequence[Place]


class ReadLetters(Struct, frozen=True, gc=False):
    """Read dead letters. Answer: list of `DeadLetter`."""

    keys: Sequence[str]


class ReadDue(Struct, frozen=True, gc=False):
    """Read published due records, as (topic, partition, offset). Answer: list of `Record`, those that are there."""

    places: Sequence[tuple[str, int, int]]


class ReadMarks(Struct, frozen=True, gc=False):
    """Read the journal of a minute. Answer: dict of minute to `Marks`."""

    minute: int


class ReadPage(Struct, frozen=True, gc=False):
    """Read a bucket piece above a point. Answer: list of `BucketRow`."""

    minute: int
    piece: int
    after: tuple[int, int]
    limit: int


class ReadProgress(Struct, frozen=True, gc=False):
    """A serial read, to resolve a checkpoint of unknown outcome. Answer: `Progress`."""


class Write(Struct, frozen=True, gc=False):
    """Put plain rows. Answer: None."""

    timestamp: int
    rows: Sequence[PlainRow]


class Record(Struct, frozen=True, gc=False):
    """Write a checkpoint. Answer: whether the fence still stood."""

    fence: int
    checkpoint: Checkpoint


class PutClosing(Struct, frozen=True, gc=False):
    """Keep a closing record. Answer: None."""

    closing: Closing


class Drop(Struct, frozen=True, gc=False):
    """Drop a bucket. Answer: None."""

    minute: int
    pieces: int
    timestamp: int


class Produce(Struct, frozen=True, gc=False):
    """Publish messages. Answer: list of `Produced` or `BrokerError`."""

    messages: Sequence[Message]


Effect = (
    Claim
    | ReadEnds
    | LookUp
    | ReadFilings
    | ReadLetters
    | ReadDue
    | ReadMarks
    | ReadPage
    | ReadProgress
    | Write
    | Record
    | PutClosing
    | Drop
    | Produce
)


class Failed(Struct, frozen=True, gc=False):
    """An effect that raised."""

    error: Exception
