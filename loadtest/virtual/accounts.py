"""Did each task that was submitted fire exactly once, and none early?

Two sides, each counted where it happens. *Submitted*: what the profile made, and what the shard's writes filed or took
back since (a task row that says cancelled, or that points elsewhere, takes its filing back). *Fired*: what the broker
acknowledged. Both are kept per minute as a count, a sum and an XOR of a hash of the key, so no row has to be kept; and
of one key in `SAMPLE` whole, with all its firings. The two sides are compared when the shard closes the minute.
"""

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import xor
from zlib import crc32

from msgspec import Struct

SAMPLE = 1 << 10


class Digest(Struct, gc=False):
    """A set of keys, each as often as it was put in."""

    count: int = 0
    total: int = 0
    mixed: int = 0

    def add(self, hashes: Sequence[int], times: int = 1) -> None:
        self.count += times * len(hashes)
        self.total += times * sum(hashes)
        self.mixed ^= reduce(xor, hashes, 0)

    def __bool__(self) -> bool:
        return bool(self.count or self.total or self.mixed)


class Tally(Struct, kw_only=True):
    """What a minute comes to, over the shards that were played, or a whole day."""

    submitted: int = 0
    filed: int = 0
    """By the shard, while it was played: late arrivals, new due times, retries."""
    cancelled: int = 0
    moved: int = 0
    fired: int = 0
    retried: int = 0
    """Of what fired, how many were second or later attempts."""
    sampled: int = 0
    lost: int = 0
    duplicated: int = 0
    early: int = 0
    mismatched: int = 0
    """Minutes of a shard whose keys are not those that were submitted, though there are as many."""

    def add(self, other: "Tally") -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def proven(self) -> bool:
        return not (self.lost or self.duplicated or self.early or self.mismatched)


class Account(Struct):
    """One minute of one shard, while it is open."""

    waiting: Digest
    """What was submitted and not taken back, less what fired: nothing, when the minute closes."""
    sample: Counter[bytes]
    tally: Tally


class Accounts:
    """All open minutes of one shard, and the sums of the closed ones. `minute` is that of the bucket."""

    def __init__(self) -> None:
        self._open: dict[int, Account] = {}
        self.closed: dict[int, Tally] = {}

    def of(self, minute: int) -> Account:
        account = self._open.get(minute)
        if account is None:
            account = self._open[minute] = Account(Digest(), Counter(), Tally())
        return account

    def submitted(self, minute: int, keys: Sequence[bytes]) -> None:
        """The profile made these."""
        account = self.of(minute)
        account.tally.submitted += len(keys)
        self._count(account, keys, hashes_of(keys), 1)

    def filed(self, minute: int, key: bytes) -> None:
        account = self.of(minute)
        account.tally.filed += 1
        self._count(account, (key,), hashes_of((key,)), 1)

    def taken_back(self, minute: int, key: bytes, *, moved: bool) -> None:
        account = self.of(minute)
        if moved:
            account.tally.moved += 1
        else:
            account.tally.cancelled += 1
        self._count(account, (key,), hashes_of((key,)), -1)

    def fired(self, minute: int, keys: Sequence[bytes], hashes: Sequence[int], early: int, retried: int) -> None:
        """The broker acknowledged these. What fires after its minute has closed is a duplicate, for sure."""
        if minute in self.closed:
            self.closed[minute].duplicated += len(keys)
            return
        account = self.of(minute)
        account.tally.fired += len(keys)
        account.tally.early += early
        account.tally.retried += retried
        self._count(account, keys, hashes, -1)

    def close(self, minute: int, made: int, rows: int, fired: int, removed: int) -> None:
        """Compare: with what the profile says it `made`, and with the shard's own closing record."""
        account = self._open.pop(minute, None) or Account(Digest(), Counter(), Tally())
        tally, left = account.tally, account.waiting
        tally.lost += max(0, left.count, made - tally.submitted)
        tally.duplicated += max(0, -left.count)
        astray = any(account.sample.values()) or bool(left)
        tally.mismatched += bool(not left.count and astray)
        whole = rows == tally.submitted + tally.filed and fired == tally.fired
        tally.mismatched += not (whole and removed == tally.cancelled + tally.moved)
        self.closed[minute] = tally

    def waiting(self, *, below: int = 1 << 62, above: int = -1) -> int:
        """How many tasks are in those from `above` on, and `below` that."""
        return sum(one.waiting.count for minute, one in self._open.items() if above <= minute < below)

    @staticmethod
    def _count(account: Account, keys: Sequence[bytes], hashes: Sequence[int], times: int) -> None:
        account.waiting.add(hashes, times)
        for place, number in enumerate(hashes):
            if not number & (SAMPLE - 1):
                account.sample[keys[place]] += times
                account.tally.sampled += times > 0


def hashes_of(keys: Sequence[bytes]) -> list[int]:
    return list(map(crc32, keys))
