"""What does Minutewheel ask of a coordinator?

It says which dispatchers are alive, and gives each shard to one of them at a time, with a fence that is greater than
all before. It is never asked before a task fires: between two renewals the owner acts on trust (see `lease`).

The contract that both twins keep:

- A *session* begins with `join` and lives as long as renewals reach the coordinator within `session_timeout_ms`.
  When it is over, all shards of the member are free, and every verb of it but `leave` raises `LeaseLost`, for ever.
- A member id is for one join only (`member.new_member_id`): so an owner with my id is my own session's, and what an
  earlier life of this process left behind is a stranger's.
- `CoordinatorUnavailable` means that nobody knows whether it was done. Every verb may be repeated then: a shard
  that was acquired though the answer was lost is acquired again by the same member, under a greater fence.
- `members` and `owners` are never older than the call.
- No verb blocks the loop, and nothing calls back: what the connection meets in other threads shows in `breaks`.
"""

from typing import Protocol

FENCE_LIMIT = 1 << 31
"""Fences are 1 … FENCE_LIMIT - 1: they are the upper half of the store's write timestamps."""


class Roster(Protocol):
    """What anyone may ask, member or not."""

    async def members(self) -> frozenset[str]:
        """The ids of those whose sessions live and who have not withdrawn."""

    async def owners(self) -> dict[int, str]:
        """Shard → the member that holds its lease; free shards are left out."""


class Membership(Roster, Protocol):
    """One dispatcher's session, and the leases in it."""

    @property
    def session_timeout_ms(self) -> int:
        """As granted, which may differ from what was asked for, and again after a break."""

    @property
    def breaks(self) -> int:
        """How often the connection has come into doubt. It only grows, at the moment of the break, in any thread.

        An owner that sees it grow stops at once (see `lease.Session`); a break too short to be caught in the act
        still shows.
        """

    async def renew(self) -> None:
        """Write a sign of life, and return when it is acknowledged. The caller notes when it *sent* it."""

    async def acquire(self, shard: int, above: int = 0) -> int | None:
        """Take a shard's lease: its fence, or None while another member holds it.

        The fence is greater than every fence given for this shard before and greater than `above`, whatever became
        of its holder. The holder itself gets a new one and loses nothing meanwhile. `FencesExhausted` at the limit.
        """

    async def release(self, shard: int) -> None:
        """Free a shard at once. What another member holds by now is left alone."""

    async def withdraw(self) -> None:
        """Count among the members no more, for good; what is held stays held until it is released. Repeatable."""

    async def leave(self) -> None:
        """End the session and free all it held. Repeatable; also when it was over."""


class Coordinator(Roster, Protocol):
    """The way in."""

    async def join(self, member: str) -> Membership:
        """Begin a session. `MemberKnown` for an id that was used before; `DataFolderInUse` from the local twin."""
