"""Which shards a dispatcher should take and give up, and whether it may act: over the in-memory coordinator."""

import asyncio

import pytest
from minutewheel.coordinator import CoordinatorUnavailable, LeaseLost, LocalCoordinator
from minutewheel.dispatcher.leasing import Leasing
from minutewheel.store.task import SHARDS

SESSION_MS = 10_000
SETTLE_MS = 5_000


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Scene:
    def __init__(self) -> None:
        self.clock = Clock()
        self.coordinator = LocalCoordinator.in_memory(self.clock.monotonic_ms, session_timeout_ms=SESSION_MS)

    async def join(self, member: str) -> Leasing:
        return await Leasing.join(self.coordinator, member, self.clock, SETTLE_MS)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def take_all(one: Leasing) -> set[int]:
    take, give = await one.moves([])
    assert give == []
    for shard in take:
        assert await one.acquire(shard) is not None
    return set(take)


async def test_a_dispatcher_alone_takes_all_at_once(scene: Scene) -> None:
    one = await scene.join("one")
    mine = await take_all(one)
    assert mine == set(range(SHARDS))
    assert await one.moves(mine) == ([], [])


async def test_a_newcomer_counts_when_it_has_settled_and_gets_half(scene: Scene) -> None:
    one = await scene.join("one")
    mine = await take_all(one)
    two = await scene.join("two")
    assert await one.moves(mine) == ([], [])
    scene.clock.ms += SETTLE_MS
    await asyncio.gather(one.renew(mine), two.renew(()))
    take, give = await one.moves(mine)
    assert (take, len(give)) == ([], SHARDS // 2)
    assert await two.acquire(give[0]) is None  # the other has it yet
    await two.moves([])
    assert two.expects
    assert not one.expects
    for shard in give:
        await one.release(shard)
    await two.moves([])
    scene.clock.ms += SETTLE_MS
    await asyncio.gather(one.renew(mine), two.renew(()))
    take, _ = await two.moves([])
    assert take == give
    assert not two.expects


async def test_a_shard_whose_lease_is_changing_is_nobodys_move(scene: Scene) -> None:
    one = await scene.join("one")
    take = one._membership.acquire
    answered = asyncio.Event()

    async def slow(shard: int, above: int) -> int | None:
        await answered.wait()
        return await take(shard, above)

    one._membership.acquire = slow  # type: ignore[method-assign]
    taking = asyncio.create_task(one.acquire(7))
    await asyncio.sleep(0)
    assert await one.moves([]) == ([shard for shard in range(SHARDS) if shard != 7], [])
    answered.set()
    assert await taking == 1
    await one.release(7)
    assert 7 in (await one.moves([]))[0]


async def test_what_is_taken_while_it_renews_is_not_judged_by_what_it_saw_before(scene: Scene) -> None:
    one = await scene.join("one")
    mine = {3}
    await one.acquire(3)
    owners = one._membership.owners

    async def overtaken() -> dict[int, str]:
        seen = await owners()
        await one.acquire(4)
        mine.add(4)
        return seen

    one._membership.owners = overtaken  # type: ignore[method-assign]
    scene.clock.ms += SESSION_MS * 8 // 10
    assert await one.renew(mine) == set()


async def test_it_may_act_for_six_tenths_of_the_session_after_the_last_renewal(scene: Scene) -> None:
    one = await scene.join("one")
    assert one.may_act()
    assert one.pause_ms == SESSION_MS // 3
    scene.clock.ms += SESSION_MS * 6 // 10 - 1
    assert one.may_act()
    scene.clock.ms += 1
    assert not one.may_act()
    assert one.pause_ms == 0


async def test_after_a_lapse_it_acts_again_for_those_shards_that_are_still_its_own(scene: Scene) -> None:
    one = await scene.join("one")
    mine = await take_all(one)
    scene.clock.ms += SESSION_MS * 8 // 10
    assert not one.may_act()
    await one.release(5)
    assert await one.renew(mine) == {5}
    assert one.may_act()


async def test_a_session_that_is_over_is_over_for_good(scene: Scene) -> None:
    one = await scene.join("one")
    mine = await take_all(one)
    scene.clock.ms += SESSION_MS
    with pytest.raises(LeaseLost):
        await one.renew(mine)
    assert not one.may_act()
    two = await scene.join("two")
    assert await take_all(two) == mine
    with pytest.raises(LeaseLost):
        await one.acquire(0)


async def test_a_coordinator_that_does_not_answer_takes_nothing_away_before_trust_ends(scene: Scene) -> None:
    one = await scene.join("one")
    mine = await take_all(one)

    async def silent() -> None:
        raise CoordinatorUnavailable

    one._membership.renew = silent  # type: ignore[method-assign]
    scene.clock.ms += SESSION_MS // 2
    assert await one.renew(mine) == set()
    assert one.may_act()
    scene.clock.ms += SESSION_MS // 10
    assert await one.renew(mine) == set()
    assert not one.may_act()


async def test_one_that_left_acts_no_more_and_its_shards_are_free(scene: Scene) -> None:
    one = await scene.join("one")
    await take_all(one)
    await one.leave()
    assert not one.may_act()
    two = await scene.join("two")
    assert len(await take_all(two)) == SHARDS


async def test_fences_grow_above_what_the_store_has_seen(scene: Scene) -> None:
    one = await scene.join("one")
    first = await one.acquire(7)
    again = await one.acquire(7, above=500)
    assert (first, again) == (1, 501)
