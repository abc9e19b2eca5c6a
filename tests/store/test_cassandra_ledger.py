"""Is a refused batch of claims written not at all, and an unknown one counted once? On real Cassandra."""

from typing import Any

import pytest
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.cassandra_ledger import CassandraLedger, Claim, decide
from minutewheel.store.errors import UnknownOutcome
from minutewheel.store.port import Finished, Granted, Held

HOLD_MS = 30_000


def test_each_filing_of_a_batch_is_decided_by_what_stands() -> None:
    found = {1: Claim("b", 1, 99), 2: Claim("b", 1, 10), 3: Claim("a", 2, 99), 4: Claim("", 1, 0)}
    answers, writes = decide([1, 2, 3, 4, 5, 6], found, frozenset({6}), "a", (10, 50))
    assert answers == [Held(1, 99), Granted(2, 2), Granted(3, 3), Granted(4, 2), Granted(5, 1), Finished(6)]
    assert writes == {filing: Claim("a", starts, 50) for filing, starts in ((2, 2), (3, 3), (4, 2), (5, 1))}


class Watched:
    """The connection: what stood after each refusal, and an answer that gets lost after the write was done or not."""

    def __init__(self, connection: CassandraConnection, claims: Any) -> None:
        self._connection = connection
        self._claims = claims
        self.after_refusals: list[list[int]] = []
        self.lost: list[bool] = []
        self.sent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def write_if(self, statement: Any) -> bool:
        self.sent += 1
        lost = self.lost.pop(0) if self.lost else None
        applied = lost is not False and await self._connection.write_if(statement)
        if lost is not None:
            raise UnknownOutcome("timed out")
        if not applied:
            self.after_refusals.append([filing for (filing,) in await self._connection.read(self._claims.bind(()))])
        return applied


async def watched(keyspace: Any, connection: CassandraConnection, minute: int) -> Any:
    where = f"queue = 'mail' AND shard = 7 AND minute = {minute}"
    claims = await connection.prepare(f"SELECT filing FROM {keyspace.name}.ledger_claim WHERE {where}", serial=True)
    return Watched(connection, claims)


@pytest.mark.real
async def test_a_refused_batch_writes_nothing_and_is_resolved(keyspace: Any, connection: CassandraConnection) -> None:
    watch = await watched(keyspace, connection, 1)
    place = ("mail", 7, 1)
    first, second = [await CassandraLedger.open(one, keyspace.name) for one in (connection, watch)]
    await first.claim(place, [50], "a", 0, HOLD_MS)
    answers = await second.claim(place, list(range(100)), "b", 0, HOLD_MS)
    assert watch.after_refusals == [[50]]
    assert answers == [Held(n, HOLD_MS) if n == 50 else Granted(n, 1) for n in range(100)]
    assert watch.sent == 2


@pytest.mark.real
@pytest.mark.parametrize(("minute", "done"), [(2, True), (3, False)])
async def test_an_unknown_claim_counts_one_start(
    keyspace: Any, connection: CassandraConnection, minute: int, done: bool
) -> None:
    watch = await watched(keyspace, connection, minute)
    ledger = await CassandraLedger.open(watch, keyspace.name)
    watch.lost = [done]
    assert await ledger.claim(("mail", 7, minute), [1, 2], "a", 0, HOLD_MS) == [Granted(1, 1), Granted(2, 1)]
    assert watch.sent == (1 if done else 2)
    watch.sent, watch.lost = 0, [done]
    assert await ledger.renew(("mail", 7, minute), [1, 2], "a", 2 * HOLD_MS) == [1, 2]
    watch.lost = [done]
    await ledger.release(("mail", 7, minute), [1], "a", uncount=True)
    assert await ledger.claim(("mail", 7, minute), [1], "b", 0, HOLD_MS) == [Granted(1, 1)]
