import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
from minutewheel.coordinator import (
    FENCE_LIMIT,
    CoordinatorUnavailable,
    FencesExhausted,
    LeaseLost,
    MemberKnown,
    new_member_id,
)
from minutewheel.coordinator.zookeeper import ZookeeperCoordinator
from minutewheel.deploy.services import Server, down, server, up
from minutewheel.dispatcher.clock import SystemClock
from minutewheel.dispatcher.leasing import Leasing

from .conftest import counted

pytestmark = pytest.mark.real

Reach = Callable[..., Any]
T = TypeVar("T")


async def until_it_answers(verb: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await verb()
        except CoordinatorUnavailable:
            continue


async def until_lost(membership: Any) -> None:
    while True:
        try:
            await until_it_answers(membership.renew)
        except LeaseLost:
            return


async def until_broken(membership: Any) -> None:
    while not membership.breaks:  # noqa: ASYNC110  it is counted in another thread, and nobody is told
        await asyncio.sleep(0)


# Who is who.


async def test_two_members_of_one_host_and_one_name_never_share_a_shard(reach: Reach) -> None:
    """Two processes in two containers may have the same host name, and even the same process id."""
    names = [new_member_id("dispatcher-0", 1, os.urandom(8)) for _ in range(2)]
    ada, bob = [await reach().join(name) for name in names]
    both = [await asyncio.gather(ada.acquire(shard), bob.acquire(shard)) for shard in range(64)]
    assert [sum(fence is not None for fence in pair) for pair in both] == [1] * 64
    owners = await ada.owners()
    assert owners == {shard: names[pair[0] is None] for shard, pair in enumerate(both)}


async def test_an_id_joins_once(reach: Reach) -> None:
    member = new_member_id("dispatcher-0", 1, os.urandom(8))
    await reach().join(member)
    with pytest.raises(MemberKnown):
        await reach().join(member)


async def test_what_bears_my_name_and_is_not_my_sessions_is_not_mine(reach: Reach) -> None:
    ada, bob = await reach().join(), await reach().join()
    await ada.acquire(1)
    place = ada._tree.owner(3)
    await bob._connection.ask(lambda client: client.create_async(place, ada.member.encode(), ephemeral=True))
    owners = await ada.owners()
    assert owners[1] == ada.member
    assert owners[3] not in {ada.member, bob.member}
    assert await ada.acquire(3) is None
    await ada.release(3)
    assert 3 in await bob.owners()


# What others do.


async def test_a_shard_that_somebody_else_freed_shows_as_a_break(reach: Reach) -> None:
    clock, coordinator = SystemClock(), reach()
    leasing = await Leasing.join(coordinator, new_member_id("host", 1, os.urandom(8)), clock, 0)
    (ada,) = coordinator.joined
    bob = await reach().join()
    for shard in (3, 4):
        await leasing.acquire(shard)
    assert await leasing.renew({3, 4}) == set()
    await bob._connection.ask(lambda client: client.delete_async(ada._tree.owner(3)))
    assert await bob.acquire(3) is not None
    assert ada.breaks == 0
    assert await leasing.renew({3, 4}) == {3}
    assert not leasing.may_act()
    assert await leasing.renew({4}) == set()
    assert leasing.may_act()


async def test_a_member_that_was_removed_is_over_and_frees_its_shards(reach: Reach) -> None:
    ada, bob = await reach().join(), await reach().join()
    await ada.acquire(3)
    await bob._connection.ask(lambda client: client.delete_async(ada._tree.member(ada.member)))
    with pytest.raises(LeaseLost, match="removed"):
        await ada.acquire(4)
    with pytest.raises(LeaseLost, match="removed"):
        await ada.renew()
    await ada.leave()
    assert await bob.owners() == {}


async def test_what_another_took_after_somebody_freed_it_is_left_alone(reach: Reach) -> None:
    ada, bob = await reach().join(), await reach().join()
    await ada.acquire(3)
    await bob._connection.ask(lambda client: client.delete_async(ada._tree.owner(3)))
    await bob.acquire(3)
    await ada.release(3)
    assert await bob.owners() == {3: bob.member}


async def test_freeing_a_shard_takes_one_request(reach: Reach) -> None:
    ada = await reach().join()
    for _ in range(2):
        await ada.acquire(3)
    sent = counted(ada._connection)
    await ada.release(3)
    assert len(sent) == 1
    assert await ada.owners() == {}
    await ada.release(3)
    assert await ada.acquire(3) == 3


# Answers that are lost.


async def test_a_shard_whose_acquisition_was_not_answered_is_acquired_again(reach: Reach, wire: Any) -> None:
    ada, onlooker = await reach(wire.address).join(), reach()
    await lose_the_answer(ada.acquire(3), wire, onlooker, {3: ada.member})
    fence = await until_it_answers(lambda: ada.acquire(3))
    assert fence == 2
    await ada.renew()
    assert await onlooker.owners() == {3: ada.member}


async def test_one_that_is_not_acquired_again_is_freed_by_the_next_renewal(reach: Reach, wire: Any) -> None:
    ada, bob = await reach(wire.address).join(), await reach().join()
    await lose_the_answer(ada.acquire(3), wire, bob, {3: ada.member})
    await until_it_answers(ada.renew)
    assert await bob.owners() == {}
    assert await bob.acquire(3) == 2
    await ada.renew()
    assert await bob.owners() == {3: bob.member}


async def test_a_fence_that_is_refused_takes_nothing_from_the_holder(reach: Reach) -> None:
    ada = await reach().join()
    assert await ada.acquire(3, above=FENCE_LIMIT - 2) == FENCE_LIMIT - 1
    with pytest.raises(FencesExhausted):
        await ada.acquire(3)
    await ada.renew()
    assert await ada.owners() == {3: ada.member}
    assert ada.breaks == 0


async def test_a_release_that_could_not_be_said_is_said_at_the_next_renewal(reach: Reach, wire: Any) -> None:
    ada, bob = await reach(wire.address).join(), await reach().join()
    await ada.acquire(3)
    wire.remove()
    await until_broken(ada)
    with pytest.raises(CoordinatorUnavailable):
        await ada.release(3)
    assert await bob.owners() == {3: ada.member}
    await wire.lay()
    await until_it_answers(ada.renew)
    assert await bob.owners() == {}


async def lose_the_answer(acquisition: Awaitable[Any], wire: Any, onlooker: Any, owners: dict[int, str]) -> None:
    wire.loses_the_next_answer = True
    asking = asyncio.ensure_future(acquisition)
    while await onlooker.owners() != owners:
        pass
    wire.cut()
    with pytest.raises(CoordinatorUnavailable):
        await asking


# Breaks.


async def test_after_a_break_the_shards_are_kept_if_the_session_lives(reach: Reach, wire: Any) -> None:
    coordinator = reach(wire.address)
    leasing = await Leasing.join(coordinator, new_member_id("host", 1, os.urandom(8)), SystemClock(), 0)
    (ada,) = coordinator.joined
    await leasing.acquire(3)
    assert leasing.may_act()
    wire.cut()
    await until_broken(ada)
    assert not leasing.may_act()
    while not leasing.may_act():
        assert await leasing.renew({3}) == set()
    assert ada.breaks == 1
    assert await ada.owners() == {3: ada.member}


async def test_who_is_cut_off_for_a_session_timeout_has_lost_for_ever(reach: Reach, wire: Any) -> None:
    coordinator, bob = reach(wire.address), await reach().join()
    leasing = await Leasing.join(coordinator, new_member_id("host", 1, os.urandom(8)), SystemClock(), 0)
    (ada,) = coordinator.joined
    await leasing.acquire(3)
    wire.remove()
    while await bob.acquire(3) is None:
        await bob.renew()
    assert not leasing.may_act()
    await wire.lay()
    await until_lost(ada)
    with pytest.raises(LeaseLost):
        await leasing.renew({3})
    assert not leasing.may_act()
    assert await bob.owners() == {3: bob.member}


async def test_zookeeper_stands_still_for_longer_than_the_session_timeout(reach: Reach, zookeeper: Server) -> None:
    """When it goes on it may end the session or not; either way, member and onlooker are told the same."""
    coordinator, onlooker, clock = reach(), reach(), SystemClock()
    leasing = await Leasing.join(coordinator, new_member_id("host", 1, os.urandom(8)), clock, 0)
    (ada,) = coordinator.joined
    await leasing.acquire(3)
    assert await onlooker.owners() == {3: ada.member}
    zookeeper.stop()
    sent_ms = clock.monotonic_ms()
    assert await leasing.renew({3}) == set()
    while leasing.may_act():
        assert await leasing.renew({3}) == set()
    while not ada.breaks or clock.monotonic_ms() < sent_ms + ada.session_timeout_ms:
        with pytest.raises(CoordinatorUnavailable):
            await ada.renew()
    assert not leasing.may_act()
    zookeeper.cont()
    try:
        while not leasing.may_act():
            assert await leasing.renew({3}) == set()
    except LeaseLost:
        assert await until_it_answers(onlooker.owners) == {}
    else:
        assert await until_it_answers(onlooker.owners) == {3: ada.member}


async def test_a_restart_of_zookeeper_ends_no_session(reach: Reach, zookeeper: Server) -> None:
    ada, onlooker = await reach(session_timeout_ms=10_000).join(), reach()
    fence = await ada.acquire(3)
    await onlooker.owners()
    zookeeper.kill()
    await asyncio.to_thread(zookeeper.start)
    await until_it_answers(ada.renew)
    assert ada.breaks > 0
    assert await until_it_answers(onlooker.owners) == {3: ada.member}
    assert await ada.acquire(3) == fence + 1


async def test_an_ensemble_that_lost_its_data_wedges_nobody(reach: Reach, zookeeper: Server) -> None:
    """It knows neither the session nor the fences, and has seen less than its clients."""
    coordinator, onlooker = reach(), reach()
    ada = await coordinator.join()
    for _ in range(20):
        stored_fence = await ada.acquire(3, above=5_000)
    assert await onlooker.owners() == {3: ada.member}
    zookeeper.kill()
    zookeeper.wipe()
    await asyncio.to_thread(zookeeper.start)
    await until_lost(ada)
    assert await until_it_answers(onlooker.owners) == {}
    bob = await coordinator.join()
    assert await bob.acquire(3) == 1
    assert await bob.acquire(3, above=stored_fence) == stored_fence + 1
    assert await onlooker.owners() == {3: bob.member}


# The loop.


async def test_a_loop_that_stands_still_loses_its_shards(reach: Reach, zookeeper: Server) -> None:
    bob, chroot = await reach().join(), (await reach().join())._tree.root
    holds, may_go_on, after = threading.Event(), threading.Event(), list[str]()

    async def wedged() -> None:
        coordinator = ZookeeperCoordinator(zookeeper.address, chroot=chroot, session_timeout_ms=2_000)
        ada = await coordinator.join(new_member_id("wedged", 1, os.urandom(8)))
        await ada.acquire(3)
        holds.set()
        may_go_on.wait()  # the loop hangs, and the client's own threads do not
        after.append("it was over" if ada.breaks else "no break")
        with pytest.raises(LeaseLost, match="stood still"):
            await ada.renew()
        await ada.leave()

    hanging = asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(wedged())))
    await asyncio.to_thread(holds.wait)
    assert await bob.acquire(3) is None
    while await bob.acquire(3) is None:
        await bob.renew()
    may_go_on.set()
    await hanging
    assert after == ["it was over"]


async def test_who_renews_does_not_lose_them(reach: Reach) -> None:
    clock = SystemClock()
    ada = await reach(session_timeout_ms=2_000).join()
    await ada.acquire(3)
    began_ms = clock.monotonic_ms()
    while clock.monotonic_ms() < began_ms + 2 * ada.session_timeout_ms:
        await ada.renew()
        await asyncio.sleep(0.1)
    assert await ada.owners() == {3: ada.member}


# An ensemble of three.


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    folder = tmp_path_factory.mktemp("three")
    up(["zookeeper"], folder, cluster=True)
    yield [server(f"zookeeper-{place}", folder) for place in (1, 2, 3)]
    down(folder)


async def test_a_server_that_dies_takes_nothing_and_one_alone_confirms_nothing(
    reach: Reach, three: list[Server]
) -> None:
    hosts = ",".join(one.address for one in three)
    coordinator, onlooker = reach(hosts, session_timeout_ms=10_000), reach(hosts)
    leasing = await Leasing.join(coordinator, new_member_id("host", 1, os.urandom(8)), SystemClock(), 0)
    (ada,) = coordinator.joined
    fence = await leasing.acquire(3)
    host, port = ada._connection._client._connection._socket.getpeername()
    (mine,) = [one for one in three if one.address == f"{host}:{port}"]
    await asyncio.to_thread(mine.kill)
    await until_broken(ada)
    assert not leasing.may_act()
    while not leasing.may_act():
        assert await leasing.renew({3}) == set()
    assert await until_it_answers(onlooker.owners) == {3: ada.member}
    assert await ada.acquire(3) == fence + 1

    (other,) = [one for one in three if one is not mine][:1]
    await asyncio.to_thread(other.kill)
    while leasing.may_act():
        assert await leasing.renew({3}) == set()
    starting = asyncio.gather(*[asyncio.to_thread(one.start) for one in (mine, other)])
    while not (starting.done() and leasing.may_act()):
        assert await leasing.renew({3}) == set()
    assert await until_it_answers(onlooker.owners) == {3: ada.member}
