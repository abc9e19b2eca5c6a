"""Who is a member of the fleet, and from when on does the balance count it?

An id is made anew at each start of a process: a host name or a pod name names a place, and the process that stands
there now must not pass for the one that stood there before. The host in it is for reading only.

A process that dies and is started again, over and over, would move shards each time. So a newcomer counts only once
it has been seen without a gap for a stated time (*settled*). Who was there at the first look counts at once: from
there it is the looker who is new. A member that is gone stops counting at once: its shards have waited for a session
timeout already.
"""

import re
from collections.abc import Collection

from msgspec import Struct, field

HOST_LENGTH_MAX = 64
RANDOM_BYTES_MIN = 8


def new_member_id(host: str, pid: int, random_bytes: bytes) -> str:
    """Such as `db-7.example-4711-9f86d081884c7d65`: letters, digits, dots and hyphens, whatever the host is called."""
    assert len(random_bytes) >= RANDOM_BYTES_MIN, len(random_bytes)
    place = re.sub(r"[^A-Za-z0-9.-]+", "-", host)[:HOST_LENGTH_MAX] or "host"
    return f"{place}-{pid}-{random_bytes.hex()}"


class Sightings(Struct, frozen=True):
    """Since when each member counts, as one process sees the fleet. Times are monotonic milliseconds."""

    counts_from_ms: dict[str, int] = field(default_factory=dict)
    looked: bool = False

    def look(self, members: Collection[str], now_ms: int, *, settle_ms: int) -> "Sightings":
        """These are alive now. Whoever is missing starts anew when it is seen again."""
        newcomer_from_ms = now_ms + settle_ms if self.looked else now_ms
        return Sightings({m: self.counts_from_ms.get(m, newcomer_from_ms) for m in members}, looked=True)

    def counted(self, now_ms: int) -> frozenset[str]:
        """Those that the balance counts now; if nobody has settled yet, all that are alive."""
        settled = frozenset(m for m, from_ms in self.counts_from_ms.items() if from_ms <= now_ms)
        return settled or frozenset(self.counts_from_ms)
