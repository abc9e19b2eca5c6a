"""What is a task called between the wheel and the broker?"""

from msgspec import Struct

from ..store.record import HEAD, QUEUE_AT


class Due(Struct, gc=False, eq=False):
    """A filing that is due: held at the gate, then in flight. `live` turns false when it is cancelled or lost."""

    shard: int
    minute: int
    due_ms: int
    filing: int
    record: bytes
    live: bool = True

    @property
    def priority(self) -> int:
        return self.record[1]

    @property
    def queue(self) -> str:
        return queue_of(self.record)


def queue_of(record: bytes) -> str:
    """The queue, read without decoding the rest."""
    head = HEAD.unpack_from(record)
    start = QUEUE_AT + head[6]
    return record[start : start + head[7]].decode()
