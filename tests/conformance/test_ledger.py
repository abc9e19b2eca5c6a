"""Does a ledger keep its port? Behaviour only, over every twin."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from minutewheel.store.cassandra_bridge import CassandraConnection
from minutewheel.store.cassandra_ledger import CassandraLedger
from minutewheel.store.port import ClaimAnswer, Finished, Granted, Held, Ledger
from minutewheel.store.sqlite_connection import OneThread, at_once
from minutewheel.store.sqlite_ledger import SqliteLedger

PLACE = ("mail", 7, 29_000_000)
LAST_FILING = (3 << 61) - 1
HOLD_MS = 30_000

T = TypeVar("T")
TABLES = ("ledger_claim", "ledger_finished", "ledger_place")


class Twin(NamedTuple):
    """How an empty ledger is opened, and how many random histories it is worth."""

    open: Callable[[Path], AbstractAsyncContextManager[Any]]
    histories: int = 25


@asynccontextmanager
async def sqlite_on_disk(folder: Path) -> AsyncIterator[SqliteLedger]:
    async with OneThread("ledger") as call:
        ledger = await SqliteLedger.open(str(folder / "ledger.sqlite"), call)
        yield ledger
        await ledger.close()


@asynccontextmanager
async def sqlite_in_memory(_: Path) -> AsyncIterator[SqliteLedger]:
    ledger = await SqliteLedger.open(":memory:", at_once)
    yield ledger
    await ledger.close()


@asynccontextmanager
async def on_cassandra(keyspace: Any, _: Path) -> AsyncIterator[CassandraLedger]:
    connection = await CassandraConnection.open(keyspace.access)
    for table in TABLES:
        await connection.alter(f"TRUNCATE {keyspace.name}.{table}")
    yield await CassandraLedger.open(connection, keyspace.name)
    await connection.close()


TWINS = {"sqlite": Twin(sqlite_on_disk), "sqlite in memory": Twin(sqlite_in_memory)}


@pytest.fixture(params=[*TWINS, pytest.param("real", marks=pytest.mark.real)])
def twin(request: pytest.FixtureRequest) -> Twin:
    if request.param == "real":
        return Twin(partial(on_cassandra, request.getfixturevalue("keyspace")), histories=5)
    return TWINS[request.param]


@pytest.fixture
async def ledger(twin: Twin, tmp_path: Path) -> AsyncIterator[Ledger]:
    async with twin.open(tmp_path) as ledger:
        yield ledger


async def test_a_claim_is_granted_and_answered_in_the_order_asked(ledger: Ledger) -> None:
    asked = [3, LAST_FILING, 1]
    assert await ledger.claim(PLACE, asked, "a", 0, HOLD_MS) == [Granted(filing, 1) for filing in asked]
    assert await ledger.claim(PLACE, [], "a", 0, HOLD_MS) == []


async def test_a_claim_by_another_is_held_until_it_runs_out(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1], "a", 0, HOLD_MS)
    assert await ledger.claim(PLACE, [1, 2], "b", HOLD_MS - 1, 99_000) == [Held(1, HOLD_MS), Granted(2, 1)]
    assert await ledger.claim(PLACE, [1], "b", HOLD_MS, 99_000) == [Granted(1, 2)]
    assert await ledger.claim(PLACE, [1], "a", HOLD_MS, 99_000) == [Held(1, 99_000)]


async def test_a_claim_by_the_same_holder_is_granted_again_and_counts(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1], "a", 0, HOLD_MS)
    assert await ledger.claim(PLACE, [1], "a", 10, HOLD_MS + 10) == [Granted(1, 2)]
    assert await ledger.claim(PLACE, [1], "b", 10, 99_000) == [Held(1, HOLD_MS + 10)]


async def test_of_many_claims_at_once_one_is_granted(ledger: Ledger) -> None:
    holders = [f"worker {n}" for n in range(8)]
    answers = await asyncio.gather(*(ledger.claim(PLACE, [1], holder, 0, HOLD_MS) for holder in holders))
    assert sorted(type(answer).__name__ for (answer,) in answers) == ["Granted"] + ["Held"] * 7


async def test_overlapping_batches_at_once_are_each_whole(ledger: Ledger) -> None:
    """Of each filing one claim is granted, whichever batch takes it."""
    batches = [list(range(start, start + 40)) for start in (0, 20, 40, 60)]
    claims = (ledger.claim(PLACE, batch, f"worker {n}", 0, HOLD_MS) for n, batch in enumerate(batches))
    answers = await asyncio.gather(*claims)
    assert [[answer.filing for answer in batch] for batch in answers] == batches
    granted = [answer.filing for batch in answers for answer in batch if isinstance(answer, Granted)]
    assert sorted(granted) == list(range(100))


async def test_finished_is_final_for_everybody(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1], "a", 0, HOLD_MS)
    await ledger.finish(PLACE, [1])
    await ledger.finish(PLACE, [1])
    for holder in "ab":
        assert await ledger.claim(PLACE, [1], holder, 99_000, 199_000) == [Finished(1)]
    await ledger.release(PLACE, [1], "a", uncount=True)
    assert await ledger.claim(PLACE, [1], "b", 99_000, 199_000) == [Finished(1)]


async def test_a_finish_needs_no_claim(ledger: Ledger) -> None:
    await ledger.finish(PLACE, [1, LAST_FILING])
    answers = await ledger.claim(PLACE, [1, 2, LAST_FILING], "a", 0, HOLD_MS)
    assert answers == [Finished(1), Granted(2, 1), Finished(LAST_FILING)]


async def test_a_finish_counts_by_whomever_it_is_held(ledger: Ledger) -> None:
    """A frozen worker that thaws has run its filing, though another holds it by now."""
    await ledger.claim(PLACE, [1], "a", 0, HOLD_MS)
    await ledger.claim(PLACE, [1], "b", HOLD_MS, 99_000)
    await ledger.finish(PLACE, [1])
    assert await ledger.claim(PLACE, [1], "b", HOLD_MS, 99_000) == [Finished(1)]


async def test_renewing_names_what_is_still_held(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1, 2, 3], "a", 0, HOLD_MS)
    await ledger.claim(PLACE, [2], "b", HOLD_MS, 99_000)
    assert await ledger.renew(PLACE, [1, 2, 3, 4], "a", 50_000) == [1, 3]
    assert await ledger.claim(PLACE, [1, 2], "c", 49_999, 99_000) == [Held(1, 50_000), Held(2, 99_000)]
    assert await ledger.renew(PLACE, [], "a", 50_000) == []


async def test_what_is_released_can_be_claimed_at_once(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1, 2], "a", 0, HOLD_MS)
    await ledger.release(PLACE, [1], "a", uncount=True)
    await ledger.release(PLACE, [2], "a", uncount=False)
    assert await ledger.renew(PLACE, [1, 2], "a", 50_000) == []
    assert await ledger.claim(PLACE, [1, 2], "b", 1, HOLD_MS) == [Granted(1, 1), Granted(2, 2)]


async def test_a_release_by_another_changes_nothing(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1], "a", 0, HOLD_MS)
    await ledger.release(PLACE, [1, 2], "b", uncount=True)
    assert await ledger.claim(PLACE, [1], "b", 1, HOLD_MS) == [Held(1, HOLD_MS)]
    assert await ledger.claim(PLACE, [1], "a", 1, HOLD_MS) == [Granted(1, 2)]


@pytest.mark.parametrize("other", [("post", 7, 29_000_000), ("mail", 8, 29_000_000), ("mail", 7, 29_000_001)])
async def test_places_do_not_touch_each_other(ledger: Ledger, other: tuple[str, int, int]) -> None:
    await ledger.claim(PLACE, [1, 2], "a", 0, HOLD_MS)
    await ledger.finish(PLACE, [2])
    await ledger.release(other, [1], "a", uncount=True)
    assert await ledger.renew(other, [1], "a", 99_000) == []
    assert await ledger.claim(other, [1, 2], "b", 0, HOLD_MS) == [Granted(1, 1), Granted(2, 1)]
    assert await ledger.claim(PLACE, [1, 2], "b", 0, HOLD_MS) == [Held(1, HOLD_MS), Finished(2)]


async def test_running_is_what_is_claimed_not_finished_and_not_run_out(ledger: Ledger) -> None:
    await ledger.claim(PLACE, [1, 2, 3, 4], "a", 0, HOLD_MS)
    await ledger.claim(PLACE, [1], "a", 0, HOLD_MS)
    await ledger.finish(PLACE, [2])
    await ledger.release(PLACE, [3], "a", uncount=False)
    await ledger.renew(PLACE, [4], "a", 50_000)
    assert sorted(await ledger.running(1)) == [(PLACE, 1, "a", 2), (PLACE, 4, "a", 1)]
    assert await ledger.running(HOLD_MS) == [(PLACE, 4, "a", 1)]
    assert await ledger.running(50_000) == []


holders = st.sampled_from("abc")
batches = st.lists(st.integers(1, 3), max_size=3, unique=True)


class Claims(RuleBasedStateMachine):
    """Any verbs in any order, against plain dictionaries."""

    def __init__(self, twin: Twin) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.resources = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger: Ledger = self.run(self.resources.enter_async_context(twin.open(Path(self.folder.name))))
        self.now_ms = 1_000
        self.holder: dict[int, str] = {}
        self.until_ms: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.finished: set[int] = set()

    def run(self, waiting: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(waiting)

    def teardown(self) -> None:
        self.run(self.resources.aclose())
        self.runner.close()
        self.folder.cleanup()

    @rule(passed_ms=st.integers(1, 40_000))
    def time_passes(self, passed_ms: int) -> None:
        self.now_ms += passed_ms

    def expected(self, filing: int, holder: str) -> ClaimAnswer:
        if filing in self.finished:
            return Finished(filing)
        if self.holder.get(filing, holder) != holder and self.now_ms < self.until_ms[filing]:
            return Held(filing, self.until_ms[filing])
        self.starts[filing] = self.starts.get(filing, 0) + 1
        self.holder[filing], self.until_ms[filing] = holder, self.now_ms + HOLD_MS
        return Granted(filing, self.starts[filing])

    @rule(filings=batches, holder=holders)
    def claim(self, filings: list[int], holder: str) -> None:
        answers = self.run(self.ledger.claim(PLACE, filings, holder, self.now_ms, self.now_ms + HOLD_MS))
        assert answers == [self.expected(filing, holder) for filing in filings]

    def held_by(self, filings: list[int], holder: str) -> list[int]:
        return [filing for filing in filings if self.holder.get(filing) == holder]

    @rule(filings=batches, holder=holders)
    def renew(self, filings: list[int], holder: str) -> None:
        held = self.held_by(filings, holder)
        assert self.run(self.ledger.renew(PLACE, filings, holder, self.now_ms + HOLD_MS)) == held
        self.until_ms |= dict.fromkeys(held, self.now_ms + HOLD_MS)

    @rule(filings=batches)
    def finish(self, filings: list[int]) -> None:
        self.run(self.ledger.finish(PLACE, filings))
        for filing in filings:
            self.finished.add(filing)
            self.holder.pop(filing, None)

    @rule(filings=batches, holder=holders, uncount=st.booleans())
    def release(self, filings: list[int], holder: str, uncount: bool) -> None:
        self.run(self.ledger.release(PLACE, filings, holder, uncount=uncount))
        for filing in self.held_by(filings, holder):
            del self.holder[filing]
            self.starts[filing] -= uncount

    @invariant()
    def running_agrees(self) -> None:
        held = sorted(filing for filing in self.holder if self.until_ms[filing] > self.now_ms)
        expected = [(PLACE, filing, self.holder[filing], self.starts[filing]) for filing in held]
        assert sorted(self.run(self.ledger.running(self.now_ms))) == expected


def test_claims_in_any_order_agree_with_the_model(twin: Twin) -> None:
    run_state_machine_as_test(
        lambda: Claims(twin),
        settings=settings(
            max_examples=twin.histories,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
