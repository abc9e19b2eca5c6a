from typing import Any

import pytest
from minutewheel.store.errors import NotApplied, UnknownOutcome
from minutewheel.store.port import Granted, Held
from minutewheel.worker.claims import Claims

PLACE = ("mail", 7, 29_000_000)
HOLD_MS = 30_000


class Failing:
    """A ledger whose named verbs fail so often, before or after they have their effect."""

    def __init__(self, inner: Any, **failures: list[tuple[type[Exception], bool]]) -> None:
        self._inner = inner
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            if not self._failures.get(name):
                return await getattr(self._inner, name)(*arguments, **named)
            kind, after = self._failures[name].pop(0)
            if after:
                await getattr(self._inner, name)(*arguments, **named)
            raise kind(name)

        return call


def lost(claims: Claims, filing: int) -> list[str]:
    events: list[str] = []
    hold = claims.hold((PLACE, filing))
    assert hold is not None
    hold.on_lost = lambda: events.append("lost")
    return events


async def test_a_renewed_hold_outlasts_its_first_length(stand: Any) -> None:
    claims = Claims(stand.ledger, stand.clock, "a", HOLD_MS)
    await claims.claim(PLACE, [1, 2])
    events = lost(claims, 1)
    for _ in range(10):
        stand.clock.jump(10_000)
        await claims.renew()
    now_ms = stand.clock.now_ms()
    (answer,) = await stand.ledger.claim(PLACE, [1], "b", now_ms, now_ms + HOLD_MS)
    assert isinstance(answer, Held)
    assert events == []


async def test_a_hold_that_the_ledger_gave_to_another_is_lost(stand: Any) -> None:
    claims = Claims(stand.ledger, stand.clock, "a", HOLD_MS)
    await claims.claim(PLACE, [1, 2])
    events, kept = lost(claims, 1), lost(claims, 2)
    far_ms = stand.clock.now_ms() + HOLD_MS
    await stand.ledger.claim(PLACE, [1], "b", far_ms, far_ms + HOLD_MS)
    await claims.renew()
    assert (events, kept) == (["lost"], [])
    assert claims.hold((PLACE, 1)) is None
    assert claims.hold((PLACE, 2)) is not None


async def test_a_hold_that_cannot_be_renewed_is_lost_when_its_time_is_up_and_not_before(stand: Any) -> None:
    """Counted from the sending of the last renewal that went well."""
    ledger = Failing(stand.ledger, renew=[(NotApplied, False), (UnknownOutcome, True), (NotApplied, False)])
    claims = Claims(ledger, stand.clock, "a", HOLD_MS)  # type: ignore[arg-type]
    await claims.claim(PLACE, [1])
    events = lost(claims, 1)
    for _ in range(2):
        stand.clock.jump(10_000)
        await claims.renew()
        assert events == []
    stand.clock.jump(10_000)
    await claims.renew()
    assert events == ["lost"]


@pytest.mark.parametrize("after", [False, True], ids=["not landed", "landed"])
async def test_a_claim_of_unknown_outcome_counts_one_start(stand: Any, after: bool) -> None:
    ledger = Failing(stand.ledger, claim=[(UnknownOutcome, after)] * 2, release=[(UnknownOutcome, True)])
    claims = Claims(ledger, stand.clock, "a", HOLD_MS)  # type: ignore[arg-type]
    assert await claims.claim(PLACE, [1, 2]) == [Granted(1, 1), Granted(2, 1)]


async def test_what_is_released_is_another_s_at_once(stand: Any) -> None:
    claims = Claims(stand.ledger, stand.clock, "a", HOLD_MS)
    await claims.claim(PLACE, [1, 2])
    for filing, uncount in ((1, True), (2, False)):
        hold = claims.hold((PLACE, filing))
        assert hold is not None
        await claims.release(hold, uncount=uncount)
    now_ms = stand.clock.now_ms()
    assert await stand.ledger.claim(PLACE, [1, 2], "b", now_ms, now_ms + 1) == [Granted(1, 1), Granted(2, 2)]


async def test_equal_numbers_of_two_shards_are_two_holds(stand: Any) -> None:
    other = (PLACE[0], PLACE[1] + 1, PLACE[2])
    claims = Claims(stand.ledger, stand.clock, "a", HOLD_MS)
    await claims.claim(PLACE, [1])
    await claims.claim(other, [1])
    claims.let_go((PLACE, 1))
    assert claims.hold((PLACE, 1)) is None
    assert claims.hold((other, 1)) is not None
