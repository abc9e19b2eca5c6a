"""What goes over the wire: a record as a log holds it, a message as it is handed over, and the names of the topics."""

from msgspec import Struct

from ..store.record import Headers

JSON = "application/json"
MSGPACK = "application/msgpack"


class Record(Struct, frozen=True, gc=False):
    """A record as a log holds it; `time_ms` is the broker's clock."""

    topic: str
    partition: int
    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Message(Struct, frozen=True, gc=False):
    """A record to be; the partitioner chooses where `partition` is None (by key; without key, any)."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None


class Topics(Struct, frozen=True):
    """The topics of one installation."""

    prefix: str = "minutewheel"

    @property
    def submit(self) -> str:
        return f"{self.prefix}.submit"

    @property
    def forwarded(self) -> str:
        return f"{self.prefix}.forwarded"

    @property
    def outcomes(self) -> str:
        return f"{self.prefix}.outcomes"

    @property
    def rejected(self) -> str:
        return f"{self.prefix}.rejected"

    @property
    def receipts(self) -> str:
        return f"{self.prefix}.receipts"

    @property
    def dead(self) -> str:
        return f"{self.prefix}.dead"

    def due(self, queue: str) -> str:
        return f"{self.prefix}.due.{queue}"

    @property
    def logs(self) -> tuple[str, str, str]:
        """In the order of `store.position.Log`."""
        return self.submit, self.forwarded, self.outcomes

    @property
    def fixed(self) -> tuple[str, ...]:
        """All but the due topics, which come with their queues."""
        return (*self.logs, self.rejected, self.receipts, self.dead)
