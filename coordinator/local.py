"""How do sessions and leases work when all of it is in one process?

The embedded twin, on one of two grounds:

- `on_disk(folder)`: the coordinator of `minutewheel dev`. One member, whose session lasts as long as its process
  has the data folder; a second dispatcher is refused. Fences are durable.
- `in_memory(monotonic_ms)`: many members in one process, whose sessions run out by the given clock, at the earliest
  moment that the port allows. It stands in for the real coordinator where whole fleets run in virtual time; a
  dispatcher that dies simply renews no more, and one that starts anew joins the same object.

Neither has threads, waits, or a connection that could break.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from .errors import FencesExhausted, LeaseLost, MemberKnown
from .folder import DataFolder
from .port import FENCE_LIMIT, Membership

SESSION_TIMEOUT_MS = 10_000


class Ground(Protocol):
    """Where sessions, owners and fences are kept. `owners` and `members` name only those whose sessions live."""

    def take(self, member: str) -> None: ...
    def held(self, member: str) -> bool: ...
    def touch(self, member: str) -> None: ...
    def next_fence(self, shard: int, above: int, /) -> int: ...
    def note_owner(self, shard: int, member: str | None) -> None: ...
    def withdraw(self, member: str) -> None: ...
    def give_up(self, member: str) -> None: ...
    def members(self) -> frozenset[str]: ...
    def owners(self) -> dict[int, str]: ...


class LocalCoordinator:
    """The way in: build it with `on_disk` or `in_memory`. Whoever only asks needs no session."""

    def __init__(self, ground: Ground, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._ground = ground

    @classmethod
    def on_disk(cls, folder: Path, *, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> "LocalCoordinator":
        """The session timeout says only how often the owner looks whether the folder is still there."""
        return cls(DataFolder(folder), session_timeout_ms)

    @classmethod
    def in_memory(
        cls, monotonic_ms: Callable[[], int], *, session_timeout_ms: int = SESSION_TIMEOUT_MS
    ) -> "LocalCoordinator":
        return cls(Memory(monotonic_ms, session_timeout_ms), session_timeout_ms)

    async def join(self, member: str) -> Membership:
        self._ground.take(member)
        return LocalMembership(self._ground, member, self.session_timeout_ms)

    async def members(self) -> frozenset[str]:
        return self._ground.members()

    async def owners(self) -> dict[int, str]:
        return self._ground.owners()


class LocalMembership:
    """One member's session on a ground."""

    breaks = 0

    def __init__(self, ground: Ground, member: str, session_timeout_ms: int) -> None:
        self.member = member
        self.session_timeout_ms = session_timeout_ms
        self._ground = ground

    async def renew(self) -> None:
        self._check()
        self._ground.touch(self.member)

    async def members(self) -> frozenset[str]:
        self._check()
        return self._ground.members()

    async def owners(self) -> dict[int, str]:
        self._check()
        return self._ground.owners()

    async def acquire(self, shard: int, above: int = 0) -> int | None:
        self._check()
        if self._ground.owners().get(shard, self.member) != self.member:
            return None
        fence = self._ground.next_fence(shard, above)
        if fence >= FENCE_LIMIT:
            raise FencesExhausted(f"shard {shard} would get fence {fence}")
        self._ground.note_owner(shard, self.member)
        return fence

    async def release(self, shard: int) -> None:
        self._check()
        if self._ground.owners().get(shard) == self.member:
            self._ground.note_owner(shard, None)

    async def withdraw(self) -> None:
        self._check()
        self._ground.withdraw(self.member)

    async def leave(self) -> None:
        self._ground.give_up(self.member)

    def _check(self) -> None:
        if not self._ground.held(self.member):
            raise LeaseLost(f"the session of {self.member} is over")


class Memory:
    """The ground of a fleet in one process. What has run out is left where it is and counts no more."""

    def __init__(self, monotonic_ms: Callable[[], int], session_timeout_ms: int) -> None:
        self._monotonic_ms = monotonic_ms
        self._session_timeout_ms = session_timeout_ms
        self._lives_until_ms: dict[str, int] = {}
        self._owners: dict[int, str] = {}
        self._fences: dict[int, int] = {}
        self._withdrawn: set[str] = set()

    def take(self, member: str) -> None:
        if member in self._lives_until_ms:
            raise MemberKnown(f"{member} has joined before")
        self.touch(member)

    def held(self, member: str) -> bool:
        return self._monotonic_ms() < self._lives_until_ms[member]

    def touch(self, member: str) -> None:
        self._lives_until_ms[member] = self._monotonic_ms() + self._session_timeout_ms

    def next_fence(self, shard: int, above: int, /) -> int:
        self._fences[shard] = max(self._fences.get(shard, 0), above) + 1
        return self._fences[shard]

    def note_owner(self, shard: int, member: str | None) -> None:
        if member is None:
            del self._owners[shard]
        else:
            self._owners[shard] = member

    def withdraw(self, member: str) -> None:
        self._withdrawn.add(member)

    def give_up(self, member: str) -> None:
        self._lives_until_ms[member] = self._monotonic_ms()

    def members(self) -> frozenset[str]:
        return frozenset(m for m in self._lives_until_ms.keys() - self._withdrawn if self.held(m))

    def owners(self) -> dict[int, str]:
        return {shard: member for shard, member in self._owners.items() if self.held(member)}
