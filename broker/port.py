"""What does Minutewheel ask of a broker?

Logs in partitions, with offsets and the broker's time. `produce` answers when all of it is acknowledged by the
broker. `fetch` reads one partition from an offset of the caller's (the dispatchers' way, whose offsets stand in the
progress); `join` makes a member of a consumer group (the workers' way), in which each partition has one member at a
time, most of the time, and what is not committed is delivered again.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from .errors import BrokerError
from .wire import Message, Record


class Produced(Struct, frozen=True, gc=False):
    """Where an acknowledged message stands."""

    partition: int
    offset: int
    time_ms: int


class Fetched(Struct, frozen=True, gc=False):
    """Records from one partition, in order.

    `next_offset` is where to read on (offsets have gaps: it may lie above the last record's + 1); `end_offset` is the
    end of the partition as seen by this fetch; `incarnation` says which making of the topic this is (1, 2, …).
    """

    records: Sequence[Record]
    next_offset: int
    end_offset: int
    incarnation: int


class Bounds(Struct, frozen=True, gc=False):
    """The first offset that a partition still has, and its end."""

    start: int
    end: int
    incarnation: int


class GroupMember(Protocol):
    """One member of a consumer group."""

    async def poll(self, limit: int, wait_ms: int) -> list[Record]:
        """Records of the partitions that are this member's, each partition's in order, or none after `wait_ms`.

        A member that does not poll for its session's time loses its partitions. With a limit of 0 it takes nothing, and
        answers at once: so a member that has enough to do stays in the group. `NotAssigned` after `leave`.
        """

    async def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit the next offset to read for some (topic, partition). Those of partitions lost since are left out."""

    def assigned(self) -> frozenset[tuple[str, int]]:
        """The partitions that are this member's, as last heard."""

    async def leave(self) -> None:
        """Give the partitions up now rather than by silence."""


class Broker(Protocol):
    """A broker of partitioned logs."""

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        """Publish all; one answer for each, in their order, when the last is acknowledged or given up.

        An answer that is an `Unpublishable` is final for that message; any other `BrokerError` may be tried again, and
        the message may stand in the log all the same.
        """

    def purge(self) -> None:
        """Drop what `produce` has queued and the broker has not acknowledged; those calls answer with errors.

        It waits for nothing. What had been sent may stand in the log all the same.
        """

    async def fetch(self, topic: str, partition: int, offset: int, limit: int, wait_ms: int) -> Fetched:
        """Up to `limit` records from `offset` on, waiting up to `wait_ms` for one; `OffsetGone` if it is gone."""

    async def bounds(self, topic: str, partitions: Sequence[int]) -> list[Bounds]:
        """Start and end of some partitions now."""

    async def join(self, group: str, topics: Sequence[str], member: str) -> GroupMember:
        """Become a member of a group that reads these topics from where it got to, first from their starts."""

    async def create_topics(self, topics: Mapping[str, int]) -> None:
        """Create those that are missing, with so many partitions each."""

    async def topics(self) -> dict[str, int]:
        """The topics there are, and their numbers of partitions."""

    async def time_ms(self) -> int:
        """The broker's clock."""
