"""What stands where in ZooKeeper, and what follows from what is read there?

    <chroot>/members/<member id>   ephemeral: the member's sign of life, written anew at each renewal
    <chroot>/leaving/<member id>   ephemeral: it has withdrawn, and hands over what it holds
    <chroot>/owners/<shard>        ephemeral: whose shard it is; holds the member id
    <chroot>/fences/<shard>        stays: the last fence that was given for the shard, as a decimal number

An ephemeral place goes with the session that made it, and its `ephemeralOwner` is that session's id. That is what
says whose it is. The member id in it is for reading by others.

Nothing but numbers and text is decided here; asking is the matter of `zookeeper_look` and `zookeeper`.
"""

from msgspec import Struct

from .errors import FencesExhausted
from .port import FENCE_LIMIT


class Tree(Struct, frozen=True):
    """The places under one root: an absolute path without a slash at its end, such as `/minutewheel`."""

    root: str

    def __post_init__(self) -> None:
        parts = self.root.split("/")[1:]
        if not self.root.startswith("/") or not all(parts) or {".", "..", "zookeeper"} & set(parts[:1]):
            raise ValueError(f"not a path for ZooKeeper: {self.root!r} (it looks like /minutewheel)")

    @property
    def members(self) -> str:
        return f"{self.root}/members"

    @property
    def leaving(self) -> str:
        return f"{self.root}/leaving"

    @property
    def owners(self) -> str:
        return f"{self.root}/owners"

    @property
    def fences(self) -> str:
        return f"{self.root}/fences"

    def member(self, member: str) -> str:
        return f"{self.members}/{member}"

    def leaver(self, member: str) -> str:
        return f"{self.leaving}/{member}"

    def owner(self, shard: int) -> str:
        return f"{self.owners}/{shard}"

    def fence(self, shard: int) -> str:
        return f"{self.fences}/{shard}"

    def lasting(self) -> list[str]:
        """The places that stay, parents first."""
        parts = self.root.split("/")[1:]
        above = ["/" + "/".join(parts[: length + 1]) for length in range(len(parts))]
        return [*above, self.members, self.leaving, self.owners, self.fences]


class Holder(Struct, frozen=True):
    """Whose a shard is: the name that stands there, and the session that made the place."""

    member: str
    session_id: int

    def as_seen_by(self, member: str, session_id: int) -> str:
        """My name only for what my own session made; a namesake is marked, so that nobody takes it for me."""
        return f"{self.member}?" if self.member == member and self.session_id != session_id else self.member


def shard_of(name: str) -> int | None:
    """The shard whose place is called so; None for what does not belong here."""
    return int(name) if name.isascii() and name.isdecimal() and str(int(name)) == name else None


def fence_from(stored: bytes | None) -> int:
    """The last fence that was given. What is missing or unreadable counts as none: the store knows the one that
    stands, refuses what is not above it, and is asked about by `acquire(above=…)`."""
    try:
        return max(0, int(stored or b"0"))
    except ValueError:
        return 0


def next_fence(shard: int, stored: bytes | None, above: int) -> int:
    """Greater than what is stored and than `above`; `FencesExhausted` at the limit."""
    fence = max(fence_from(stored), above) + 1
    if fence >= FENCE_LIMIT:
        raise FencesExhausted(f"shard {shard} would get fence {fence}")
    return fence
