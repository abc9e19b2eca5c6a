"""Which share of the partitions is a group member's, and how much may each partition add to one poll?

Pure. Each member works its share out by itself from the table of who holds what, so all of them must come to shares
that fit together: a topic's shares add up to its partitions, differ by one at most, and the larger ones go to those
who hold the most already, so that a member that comes or goes moves as little as possible.
"""

from collections.abc import Mapping, Sequence
from zlib import crc32


def share(topic: str, partitions: int, member: str, held: Mapping[str, int]) -> int:
    """How many of a topic's partitions this member should hold; `held` is what each live member holds of it now."""
    least, larger = divmod(partitions, len(held))
    # A hash breaks ties, so that the larger shares of many topics do not all fall to the first name.
    ranked = sorted(held, key=lambda name: (-held[name], crc32(f"{topic}/{name}".encode()), name))
    return least + (ranked.index(member) < larger)


def portions(available: Sequence[int], limit: int) -> list[int]:
    """Split `limit` over partitions that have so many records each, as evenly as they can; the first of equals win."""
    taken = [0] * len(available)
    left = limit
    while left > 0 and (unsated := [i for i, there in enumerate(available) if there > taken[i]]):
        each = max(1, left // len(unsated))
        for i in unsated[:left]:
            more = min(each, available[i] - taken[i])
            taken[i] += more
            left -= more
    return taken
