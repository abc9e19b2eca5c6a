import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.position import OFFSET_LIMIT, Log, filing_number, pack_position
from minutewheel.worker.once import HOLD_MS, first_time, number_of, place_of

PLACE = ("mail#once", 7, 0)


async def test_only_the_first_is_told_yes_however_long_ago(stand: Any) -> None:
    assert await first_time(stand.ledger, stand.clock, "a", PLACE, 1)
    for _ in range(3):
        stand.clock.jump(86_400_000)
        assert not await first_time(stand.ledger, stand.clock, "b", PLACE, 1)
    assert await first_time(stand.ledger, stand.clock, "b", PLACE, 2), "another effect"


async def test_of_many_at_the_same_instant_one_is_told_yes(stand: Any) -> None:
    answers = await asyncio.gather(*(first_time(stand.ledger, stand.clock, f"{n}", PLACE, 1) for n in range(20)))
    assert sum(answers) == 1


async def test_one_that_died_before_it_was_told_does_not_count(stand: Any) -> None:
    now_ms = stand.clock.now_ms()
    await stand.ledger.claim(PLACE, [1], "dead", now_ms, now_ms + HOLD_MS)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(first_time(stand.ledger, stand.clock, "a", PLACE, 1))
        await asyncio.sleep(0)
        assert not asking.done()
        stand.clock.jump(HOLD_MS)
    assert asking.result()


async def test_who_took_so_long_that_another_may_have_been_told_yes_is_told_no(stand: Any) -> None:
    class Frozen:
        """The process stands still between the claim and the finish."""

        def __getattr__(self, name: str) -> Any:
            return getattr(stand.ledger, name)

        async def finish(self, *arguments: Any) -> None:
            stand.clock.jump(HOLD_MS)
            await stand.ledger.finish(*arguments)

    assert not await first_time(Frozen(), stand.clock, "a", PLACE, 1)  # type: ignore[arg-type]
    assert not await first_time(stand.ledger, stand.clock, "b", PLACE, 1)


@given(st.text(), st.text(), st.text(), st.text())
def test_different_effects_have_different_numbers(key: str, effect: str, other_key: str, other_effect: str) -> None:
    if (key, effect) != (other_key, other_effect) and "\0" not in key + other_key:
        assert number_of(key, effect) != number_of(other_key, other_effect)
    assert 0 <= number_of(key, effect) < 1 << 63


@given(st.integers(0, OFFSET_LIMIT - 1))
def test_a_place_is_shared_by_about_a_thousand_versions(offset: int) -> None:
    place = place_of("mail", 7, filing_number(Log.SUBMIT, pack_position(1, offset)))
    assert place[:2] == ("mail#once", 7)
    first = offset // 1024 * 1024
    assert place == place_of("mail", 7, filing_number(Log.SUBMIT, pack_position(1, first)))
    assert place != place_of("mail", 7, filing_number(Log.SUBMIT, pack_position(2, first)))
