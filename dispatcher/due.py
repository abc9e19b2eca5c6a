"""What is a task called between the wheel and the broker?"""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from ..store.record import LENGTHS, LENGTHS_AT, QUEUE_AT

PRIORITY_AT = 1


class Due(Struct, gc=False, eq=False):
    """A filing that is due: held at the gate, then in flight. `live` turns false when it is cancelled or lost,
    `doubtful` true when the broker may have taken it and did not say so.

    The gate numbers it when it comes first, and notes the time then: so it keeps its place if it comes again.
    """

    shard: int
    minute: int
    due_ms: int
    filing: int
    record: bytes
    live: bool = True
    doubtful: bool = False
    arrival: int = 0
    since_ms: int = 0

    @property
    def priority(self) -> int:
        return self.record[PRIORITY_AT]

    @property
    def queue(self) -> str:
        return queue_of(self.record)


def queue_of(record: bytes) -> str:
    """The queue, read without decoding the rest."""
    return lane_of(record)[1].decode()


def lane_of(record: bytes) -> tuple[int, bytes]:
    """Priority and queue in one, for looking up and for nothing else."""
    key_bytes, queue_bytes = LENGTHS.unpack_from(record, LENGTHS_AT)
    start = QUEUE_AT + key_bytes
    return record[PRIORITY_AT], record[start : start + queue_bytes]


def by_shard(dues: Iterable[Due]) -> dict[int, list[Due]]:
    """The tasks of each shard, in their order."""
    groups: defaultdict[int, list[Due]] = defaultdict(list)
    for due in dues:
        groups[due.shard].append(due)
    return groups
