"""Which member should own which shard, and what should a member take and give up now?

*Bounded rendezvous.* Each pair of a member and a shard has a score, a hash of both names. All pairs are gone through
from the highest score down; a pair is made if the shard is still free and the member has room. Room is the fair
share: with 64 shards and 5 members, four of them own 13 and one owns 12.

Why this way: every member computes the same answer from the list of members alone, without asking anyone and
without a leader that could die. The scores of the others do not change when one comes or goes, so most pairs are
made again as before. And the shards of a member that dies go to all the others, not to one next in line.

How near to the least: a newcomer must get its share, and a leaver's share must go somewhere; that many shards have
to move. Plain rendezvous hashing moves no more, but its shares differ by half and more. The bound of ±1 costs some
chains (a full member passes a shard on): over 4,800 random fleets of 2 to 33 members with 64 shards they moved 4
shards above the least on average and 12 at most. The tests hold it to `EXTRA_MOVES_MAX`. Choosing the pairs by the
best total score instead (an assignment problem, solved exactly) moved no fewer.

Prior art: rendezvous hashing (Thaler and Ravishankar, 1998); consistent hashing with bounded loads (Mirrokni, Thorup
and Zadimoghaddam, 2018), whose bound is a factor where ours is one shard.

The answer is a wish. `changes` turns it into what one member does about it now: it takes only what is free, and
gives up a shard only to another member that is alive and wanted there, so no shard stands empty for the balance's
sake. Who counts as a member, and when, is the matter of `member.Sightings`.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b

from msgspec import Struct

EXTRA_MOVES_MAX = 16
"""Of 64 shards, how many may move beyond the least when one member comes or goes."""


class Changes(Struct, frozen=True):
    """What one member should do now: shards to acquire, and shards to hand over, ascending."""

    take: tuple[int, ...] = ()
    give: tuple[int, ...] = ()


def assign(shards: int, members: Collection[str]) -> dict[int, str]:
    """The wanted owner of each shard 0 … shards - 1; loads differ by one at most. Nobody there: an empty answer."""
    if not members:
        return {}
    share, larger_shares = divmod(shards, len(set(members)))
    wanted: dict[int, str] = {}
    load: Counter[str] = Counter()
    for member, shard in pairs_by_score(shards, members):
        if shard in wanted or load[member] > share or (load[member] == share and not larger_shares):
            continue
        larger_shares -= load[member] == share
        load[member] += 1
        wanted[shard] = member
    return dict(sorted(wanted.items()))


def pairs_by_score(shards: int, members: Collection[str]) -> Iterator[tuple[str, int]]:
    """Highest first, ties by name: the order of `members` does not show."""
    scored = ((score(member, shard), member, shard) for member in set(members) for shard in range(shards))
    return ((member, shard) for _, member, shard in sorted(scored, reverse=True))


def score(member: str, shard: int) -> int:
    """The same in every process, on every machine and in every version: 64 bits of BLAKE2b."""
    return int.from_bytes(blake2b(f"{shard}/{member}".encode(), digest_size=8).digest(), "big")


def changes(member: str, wanted: Mapping[int, str], owners: Mapping[int, str], alive: Collection[str]) -> Changes:
    """What `member` does about the wish, given who owns what and who is alive at present.

    `wanted` may be older than `owners` and `alive`: a shard stays where it is if its wanted owner has gone since.
    """
    return Changes(
        take=tuple(sorted(s for s, m in wanted.items() if m == member and s not in owners)),
        give=tuple(
            sorted(s for s, m in owners.items() if m == member and wanted.get(s, m) != m and wanted[s] in alive)
        ),
    )
