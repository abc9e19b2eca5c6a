"""Which filings have run, and who runs which? The fleet's answer.

All claims of one (queue, shard, minute) stand in one partition, so a batch is one conditional write: all of it, or
nothing. The first try takes the filings for new. When it is refused, or nobody knows, a serial read tells what stands,
what is held is dropped from the batch, and the rest is tried once more, each row on the condition that it is as it was
read. *Finished* is written plainly to a table of its own, which no condition ever touches; it outranks any claim.

A claim that takes over a hold which ran out looks for *finished* once more afterwards: its holder may have ended
meanwhile. All rows carry a TTL, the time for which a delivery of the same filing is known as a repeat.
"""

# ruff: noqa: S608 - statements are put together of constants and a checked keyspace name; values are always bound

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct

from .cassandra_bridge import CassandraConnection, all_of
from .cassandra_schema import parts_of
from .cassandra_statements import (
    BYTES_MAX,
    ROWS_MAX,
    Write,
    batch,
    bigint_value,
    chunks,
    conditional,
    int_value,
    smallint_value,
    text_value,
)
from .errors import NotApplied, StoreError, UnknownOutcome
from .port import ClaimAnswer, Finished, Granted, Held
from .task import SHARDS

Place = tuple[str, int, int]
"""What a batch has in common: (queue, shard, minute)."""

KEEP_S = 14 * 86_400
PLACE_S = 3_600
"""A place counts as busy for so long after its last claim or renewal."""
ATTEMPTS = 4
ROW_BYTES = 60
NOBODY = ""
"""The holder of a claim that was let go."""


class Claim(Struct, frozen=True):
    """A claim as it stands."""

    holder: str
    starts: int
    until_ms: int


def decide(
    filings: Sequence[int],
    found: Mapping[int, Claim],
    finished: frozenset[int],
    holder: str,
    span_ms: tuple[int, int],
) -> tuple[list[ClaimAnswer], dict[int, Claim]]:
    """The answers to a claim at `span_ms` = (now, until), if the rows that it needs can be written."""
    now_ms, until_ms = span_ms
    answers: list[ClaimAnswer] = []
    writes: dict[int, Claim] = {}
    for filing in filings:
        claim = writes.get(filing) or found.get(filing) or Claim(NOBODY, 0, 0)
        if filing in finished:
            answers.append(Finished(filing))
        elif claim.holder not in {NOBODY, holder} and now_ms < claim.until_ms:
            answers.append(Held(filing, claim.until_ms))
        else:
            writes[filing] = Claim(holder, claim.starts + 1, until_ms)
            answers.append(Granted(filing, claim.starts + 1))
    return answers, writes


class CassandraLedger:
    """The fleet's `Ledger`. Any number of processes may have the keyspace open."""

    def __init__(self, connection: CassandraConnection, statements: dict[str, Any], keep_s: int) -> None:
        self._connection = connection
        self._statements = statements
        self._keep_s = keep_s

    @classmethod
    async def open(cls, connection: CassandraConnection, keyspace: str, *, keep_s: int = KEEP_S) -> Self:
        """Prepare what is needed; `keep_s` is the time for which finished filings and claims are remembered.

        The connection stays the caller's. Raise as `CassandraStore.open` does.
        """
        await parts_of(connection, keyspace)
        claims, finished, places = (f"{keyspace}.ledger_{name}" for name in ("claim", "finished", "place"))
        of_place = "queue = ? AND shard = ? AND minute = ?"
        serial = {
            "claims": f"SELECT filing, holder, starts, until_ms FROM {claims} WHERE {of_place} AND filing IN ?",
            "all claims": f"SELECT filing, holder, starts, until_ms FROM {claims} WHERE {of_place}",
        }
        other = {
            "take": f"INSERT INTO {claims} (queue, shard, minute, filing, holder, starts, until_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS USING TTL ?",
            "change": f"UPDATE {claims} USING TTL ? SET holder = ?, starts = ?, until_ms = ?"
            f" WHERE {of_place} AND filing = ? IF holder = ? AND starts = ? AND until_ms = ?",
            "finish": f"INSERT INTO {finished} (queue, shard, minute, filing) VALUES (?, ?, ?, ?) USING TTL ?",
            "finished": f"SELECT filing FROM {finished} WHERE {of_place} AND filing IN ?",
            "busy": f"INSERT INTO {places} (shard, queue, minute) VALUES (?, ?, ?) USING TTL ?",
            "places": f"SELECT queue, shard, minute FROM {places} WHERE shard = ?",
        }
        statements = {name: await connection.prepare(cql, serial=True) for name, cql in serial.items()}
        statements |= {name: await connection.prepare(cql) for name, cql in other.items()}
        return cls(connection, statements, keep_s)

    async def claim(
        self, place: Place, filings: Sequence[int], holder: str, now_ms: int, until_ms: int
    ) -> list[ClaimAnswer]:
        if not filings:
            return []
        finished, _ = await asyncio.gather(self._finished(place, filings), self._busy(place))
        found: dict[int, Claim] = {}
        failure: UnknownOutcome | None = None
        for _ in range(ATTEMPTS):
            answers, writes = decide(filings, found, finished, holder, (now_ms, until_ms))
            try:
                if await self._change(place, found, writes):
                    return await self._checked(place, answers, found)
                unknown = False
            except UnknownOutcome as error:
                failure, unknown = error, True
            found, finished = await self._after(place, filings, failure)
            if unknown and all(found.get(filing) == claim for filing, claim in writes.items()):
                return _less(answers, finished)
        raise failure or NotApplied(f"others claim in {place}")

    async def renew(self, place: Place, filings: Sequence[int], holder: str, until_ms: int) -> list[int]:
        if not filings:
            return []

        def renewed(claim: Claim) -> Claim:
            return Claim(holder, claim.starts, until_ms)

        kept, _ = await asyncio.gather(self._change_held(place, filings, holder, renewed), self._busy(place))
        return [filing for filing in filings if filing in kept]

    async def finish(self, place: Place, filings: Sequence[int]) -> None:
        head, keep = _place_values(place), int_value(self._keep_s)
        groups = chunks(filings, [ROW_BYTES] * len(filings), ROWS_MAX, BYTES_MAX)

        async def put(some: Sequence[int]) -> None:
            rows = [[*head, bigint_value(filing), keep] for filing in some]
            await self._connection.write(batch(self._statements["finish"], rows))

        await all_of(put, list(groups))

    async def release(self, place: Place, filings: Sequence[int], holder: str, *, uncount: bool) -> None:
        def let_go(claim: Claim) -> Claim:
            return Claim(NOBODY, claim.starts - uncount, 0)

        if filings:
            await self._change_held(place, filings, holder, let_go)

    async def running(self, now_ms: int) -> list[tuple[Place, int, str, int]]:
        """Read from the places where something was claimed or renewed within the hour."""

        async def places(shard: int) -> list[Any]:
            return await self._connection.read(self._statements["places"].bind((shard,)))

        async def at(place: Place) -> list[tuple[Place, int, str, int]]:
            rows = await self._connection.read(self._statements["all claims"].bind(place))
            held = {filing: (holder, starts) for filing, holder, starts, until in rows if holder and until > now_ms}
            finished = await self._finished(place, list(held))
            return [(place, filing, *claim) for filing, claim in held.items() if filing not in finished]

        busy = [place for found in await all_of(places, range(SHARDS)) for place in found]
        return [one for found in await all_of(at, sorted(busy)) for one in found]

    async def _change_held(
        self, place: Place, filings: Sequence[int], holder: str, change: Callable[[Claim], Claim]
    ) -> set[int]:
        """Change what the holder holds and has not finished; the answer names it."""
        failure: UnknownOutcome | None = None
        before: dict[int, Claim] = {}
        for _ in range(ATTEMPTS):
            found, finished = await self._after(place, filings, failure)
            if before and all(found.get(filing) == change(claim) for filing, claim in before.items()):
                return set(before)  # the unknown write was done
            held = {at: claim for at, claim in found.items() if claim.holder == holder and at not in finished}
            before = {}
            try:
                if await self._change(place, held, {filing: change(claim) for filing, claim in held.items()}):
                    return set(held)
            except UnknownOutcome as error:
                failure, before = error, held
        raise failure or NotApplied(f"others claim in {place}")

    async def _after(
        self, place: Place, filings: Sequence[int], failure: UnknownOutcome | None
    ) -> tuple[dict[int, Claim], frozenset[int]]:
        """What stands, after a try or before the first. If that can't be read, an unknown write stays unknown."""
        try:
            return await asyncio.gather(self._claims(place, filings), self._finished(place, filings))
        except NotApplied as error:
            raise failure or error from error

    async def _change(self, place: Place, found: Mapping[int, Claim], writes: Mapping[int, Claim]) -> bool:
        """Write all of these claims, if each row still is as it was found; or none."""
        if not writes:
            return True
        statements: list[Write] = []
        for filing, new in writes.items():
            values = (new.holder, new.starts, new.until_ms)
            if (old := found.get(filing)) is None:
                statements.append((self._statements["take"], (*place, filing, *values, self._keep_s)))
            else:
                as_found = (old.holder, old.starts, old.until_ms)
                statements.append((self._statements["change"], (self._keep_s, *values, *place, filing, *as_found)))
        return await self._connection.write_if(conditional(statements))

    async def _checked(self, place: Place, answers: list[ClaimAnswer], found: Mapping[int, Claim]) -> list[ClaimAnswer]:
        """A filing that was taken over may have been finished by its holder in the meantime."""
        taken = [answer.filing for answer in answers if isinstance(answer, Granted) and answer.filing in found]
        return _less(answers, await self._finished(place, taken))

    async def _claims(self, place: Place, filings: Sequence[int]) -> dict[int, Claim]:
        rows = await self._connection.read(self._statements["claims"].bind((*place, list(filings))))
        return {filing: Claim(*claim) for filing, *claim in rows if claim[0] is not None}

    async def _finished(self, place: Place, filings: Sequence[int]) -> frozenset[int]:
        if not filings:
            return frozenset()
        rows = await self._connection.read(self._statements["finished"].bind((*place, list(filings))))
        return frozenset(filing for (filing,) in rows)

    async def _busy(self, place: Place) -> None:
        """Only `running` reads it, so a failure is nobody's harm."""
        queue, shard, minute = place
        statement = self._statements["busy"].bind((shard, queue, minute, PLACE_S))
        try:
            await self._connection.write(statement)
        except StoreError:
            return


def _less(answers: list[ClaimAnswer], finished: frozenset[int]) -> list[ClaimAnswer]:
    return [Finished(answer.filing) if answer.filing in finished else answer for answer in answers]


def _place_values(place: Place) -> list[bytes]:
    queue, shard, minute = place
    return [text_value(queue), smallint_value(shard), bigint_value(minute)]
