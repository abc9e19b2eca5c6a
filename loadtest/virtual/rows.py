"""What stands in the bucket of a minute and shard, as if it had been filed days before?

Rows are made from the profile when they are read, and made again when they are read again. All that a row needs is its
minute and its place among the minute's rows: these two make its filing number and its id.
"""

from bisect import bisect_left
from collections.abc import Sequence

from ...store.position import INDEX_BITS, pack_position, position_of, unpack_position
from ...store.record import HEAD, NO_HEADERS, VERSION, Options, Retry, encode_options
from ...store.task import TaskRow, minute_of
from ..profile import BIG_TENANT, TENANTS, Profile, tenant_name

INCARNATION = 1
FILERS_FENCE = 1
"""Of the owner who filed all that was there before the first minute."""
PLACE_BITS = 23
LIVE_OFFSET = 1 << 36
"""The submit log's end before the first minute: what comes later stands from here on."""
LATE_NUMBER = 1 << 36
QUEUE = "load"
NUMBER = "%011d"
KEY = slice(HEAD.size, HEAD.size + 20)
"""Where a record has its key: all are equally long."""
RETRY = Retry(base_ms=5_000)
OPTIONS = encode_options(Options(retry=RETRY))
DIGEST = b"0" * 16


class Rows:
    """The rows of one shard."""

    def __init__(self, profile: Profile, shard: int) -> None:
        self.shard = shard
        self.first = minute_of(profile.midnight_ms)
        self._profile = profile
        self._small = [self._template(tenant_name(small), small) for small in range(TENANTS)]
        self._big = self._template(BIG_TENANT, 0)
        self._kept: dict[int, Sequence[int]] = {}

    def dues(self, minute: int) -> Sequence[int]:
        """The due times of a bucket; those of the last few are kept, for a bucket is read page by page."""
        if (dues := self._kept.get(minute)) is None:
            if len(self._kept) > 3:
                del self._kept[next(iter(self._kept))]
            number = minute - self.first
            dues = self._kept[minute] = self._profile.dues(self.shard, number)
        return dues

    def count(self, minute: int) -> int:
        return self._profile.of_shard(self.shard, minute - self.first)

    def after(self, minute: int, point: tuple[int, int]) -> int:
        """The place of the first row that stands above a point (due_ms, filing)."""
        due_ms, filing = point
        dues = self.dues(minute)
        place = bisect_left(dues, due_ms)
        while place < len(dues) and dues[place] == due_ms and self.filing(minute, place) <= filing:
            place += 1
        return place

    def made(self, filing: int) -> bool:
        """Does this filing come from the profile?"""
        return filing < pack_position(INCARNATION, LIVE_OFFSET)

    def filing(self, minute: int, place: int) -> int:
        return pack_position(INCARNATION, minute - self.first << PLACE_BITS | place)

    def place(self, filing: int) -> int:
        """Where a filing that the profile made stands in its bucket."""
        return unpack_position(filing).offset & ((1 << PLACE_BITS) - 1)

    def minute(self, filing: int) -> int:
        return self.first + (unpack_position(filing).offset >> PLACE_BITS)

    def forget(self, minute: int) -> None:
        self._kept.pop(minute, None)

    def filings(self, minute: int, start: int, stop: int) -> Sequence[int]:
        return range(self.filing(minute, start), self.filing(minute, stop), 1 << INDEX_BITS)

    def records(self, minute: int, start: int, stop: int) -> list[bytes]:
        """Each a `bytes` of its own, as a page from a store brings them."""
        number = minute - self.first
        base, turn = number << PLACE_BITS, self._profile.small(number, 0)
        first_small = min(stop, max(start, self._profile.campaign(self.shard, number)))
        big, small, mask = self._big, self._small, TENANTS - 1
        records = [big % (base + place) for place in range(start, first_small)]
        records += [small[(place + turn) & mask] % (base + place) for place in range(first_small, stop)]
        return records

    def record(self, minute: int, place: int) -> bytes:
        return self.records(minute, place, place + 1)[0]

    def task(self, filing: int, due_ms: int) -> TaskRow:
        """The task row that was filed with it."""
        minute = self.minute(filing)
        return TaskRow(
            key=self.record(minute, self.place(filing))[KEY].decode(),
            filing=filing,
            origin=filing,
            minute=minute,
            due_ms=due_ms,
            state="scheduled",
            attempt=1,
            queue=QUEUE,
            digest=DIGEST,
            submit_pos=position_of(filing),
            answer="accepted",
        )

    def late(self, minute: int, index: int) -> tuple[str, bytes]:
        """Key and payload of a late arrival."""
        number = minute - self.first
        small = self._profile.small(number, index)
        id_number = LATE_NUMBER + (number << PLACE_BITS | index)
        return _key(tenant_name(small), self.shard, f"{id_number:011d}"), _payload(self._profile, small)

    def _template(self, tenant: str, small: int) -> bytes:
        """A record in which only the number of the id is missing. It names no origin: few of them are asked for it."""
        key, queue, payload = _key(tenant, self.shard, NUMBER), QUEUE.encode(), _payload(self._profile, small)
        lengths = KEY.stop - KEY.start, len(queue), len(OPTIONS), len(NO_HEADERS)
        head = HEAD.pack(VERSION, 2, 1, FILERS_FENCE, 0, 0, *lengths)
        before, after = key.encode().split(NUMBER.encode())
        parts = head + before, after + queue + OPTIONS + NO_HEADERS + payload
        return NUMBER.encode().join(part.replace(b"%", b"%%") for part in parts)


def _key(tenant: str, shard: int, number: str) -> str:
    return f"{tenant}/{shard:02d}-{number}"


def _payload(profile: Profile, small: int) -> bytes:
    return b"x" * profile.sizes[small % len(profile.sizes)]
