"""What every coordinator must do, run over each of its twins.

A twin enters by a `Bench`: how a process that starts reaches it, and how a session ends without a word. The twins
that carry only one member at a time take part in the first half.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from kazoo.client import KazooClient
from minutewheel.coordinator import (
    FENCE_LIMIT,
    Coordinator,
    CoordinatorError,
    CoordinatorUnavailable,
    FencesExhausted,
    LeaseLost,
    LocalCoordinator,
    Membership,
)
from minutewheel.coordinator.zookeeper import ZookeeperCoordinator, ZookeeperMembership

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Bench(Protocol):
    """One twin under test."""

    def reach(self) -> Coordinator:
        """What a process that starts now has in hand; all of them lead to the same leases."""

    async def expire(self, membership: Membership, *others: Membership) -> None:
        """End its session, as if its renewals had not come; `others` live on. Returns when it is over."""

    async def close(self) -> None:
        """End what is left of it."""


class OnDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def reach(self) -> Coordinator:
        return LocalCoordinator.on_disk(self.folder)

    async def expire(self, membership: Membership, *others: Membership) -> None:
        assert not others
        (self.folder / "coordinator" / "dispatcher.pid").unlink()

    async def close(self) -> None:
        """The kernel does."""


class InMemory:
    def __init__(self) -> None:
        self.now_ms = 0
        self.coordinator = LocalCoordinator.in_memory(lambda: self.now_ms)

    def reach(self) -> Coordinator:
        return self.coordinator

    async def expire(self, membership: Membership, *others: Membership) -> None:
        for _ in range(2):
            self.now_ms += membership.session_timeout_ms // 2
            for other in others:
                await other.renew()

    async def close(self) -> None:
        """Nothing stays of it."""


class Real:
    """ZooKeeper, under a root that nobody else has."""

    def __init__(self, hosts: str) -> None:
        self.hosts = hosts
        self.chroot = f"/conformance-{os.urandom(6).hex()}"
        self.coordinators: list[Remembering] = []

    def reach(self) -> Coordinator:
        self.coordinators.append(Remembering(self.hosts, chroot=self.chroot))
        return self.coordinators[-1]

    async def expire(self, membership: Membership, *others: Membership) -> None:
        """Whoever knows a session's id and password may end it."""
        assert isinstance(membership, ZookeeperMembership)
        credentials = membership._connection._client.client_id
        while True:
            await asyncio.to_thread(end_session, self.hosts, credentials)
            try:
                await membership.renew()
            except CoordinatorUnavailable:
                continue
            except LeaseLost:
                return

    async def close(self) -> None:
        for coordinator in self.coordinators:
            for membership in coordinator.joined:
                await membership.leave()
            await coordinator.close()


class Remembering(ZookeeperCoordinator):
    """Remembers who joined, so that all can be ended."""

    def __init__(self, hosts: str, *, chroot: str) -> None:
        super().__init__(hosts, chroot=chroot)
        self.joined: list[Membership] = []

    async def join(self, member: str) -> Membership:
        self.joined.append(await super().join(member))
        return self.joined[-1]


def end_session(hosts: str, credentials: tuple[int, bytes]) -> None:
    client = KazooClient(hosts=hosts, client_id=credentials)
    client.start()
    client.stop()
    client.close()


REAL = pytest.param("real", marks=pytest.mark.real)


@pytest.fixture(params=["on_disk", "in_memory", REAL])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    made: Bench = OnDisk(tmp_path / "data") if request.param == "on_disk" else carrying_many(request)
    yield made
    await made.close()


@pytest.fixture(params=["in_memory", REAL])
async def crowd(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """The twins that carry several members at once."""
    made = carrying_many(request)
    yield made
    await made.close()


def carrying_many(request: pytest.FixtureRequest) -> Bench:
    return Real(request.getfixturevalue("services").zookeeper) if request.param == "real" else InMemory()


NUMBERS = count(1)


def fresh() -> str:
    return f"host-{next(NUMBERS)}-00c0ffee00c0ffee"


async def fence_of(membership: Membership, shard: int, above: int = 0) -> int:
    fence = await membership.acquire(shard, above)
    assert fence is not None
    return fence


# One member.


async def test_a_member_shows_and_owns_nothing_at_first(bench: Bench) -> None:
    member = fresh()
    membership = await bench.reach().join(member)
    assert await membership.members() == {member}
    assert await membership.owners() == {}
    assert membership.session_timeout_ms > 0
    assert membership.breaks == 0


async def test_an_empty_fleet_has_no_members_and_no_owners(bench: Bench) -> None:
    assert await bench.reach().members() == frozenset()
    assert await bench.reach().owners() == {}


async def test_owners_name_what_was_acquired_and_not_released(bench: Bench) -> None:
    member = fresh()
    membership = await bench.reach().join(member)
    for shard in (0, 7, 63):
        await fence_of(membership, shard)
    await membership.release(7)
    assert await membership.owners() == {0: member, 63: member}


async def test_who_is_no_member_sees_the_same(bench: Bench) -> None:
    member = fresh()
    membership = await bench.reach().join(member)
    await fence_of(membership, 5)
    onlooker = bench.reach()
    assert await onlooker.members() == {member}
    assert await onlooker.owners() == {5: member}
    await membership.leave()
    assert await onlooker.members() == frozenset()
    assert await onlooker.owners() == {}


async def test_fences_are_positive_and_grow_over_release_and_acquire(bench: Bench) -> None:
    membership = await bench.reach().join(fresh())
    fences = [0]
    for _ in range(250):
        fences.append(await fence_of(membership, 9))
        await membership.release(9)
    assert fences == sorted(set(fences))


async def test_fences_grow_over_sessions_that_were_left_and_sessions_that_ended(bench: Bench) -> None:
    fences = [0]
    for turn in range(6):
        membership = await bench.reach().join(fresh())
        fences += [await fence_of(membership, 9), await fence_of(membership, 9)]
        await (membership.leave() if turn % 2 else bench.expire(membership))
    assert fences == sorted(set(fences))


async def test_a_fence_is_above_what_was_asked_and_so_are_all_later_ones(bench: Bench) -> None:
    membership = await bench.reach().join(fresh())
    assert await fence_of(membership, 3, above=5_000) > 5_000
    await membership.leave()
    successor = await bench.reach().join(fresh())
    assert await fence_of(successor, 3, above=17) > 5_001


async def test_the_holder_gets_a_new_fence_and_loses_nothing(bench: Bench) -> None:
    member = fresh()
    membership = await bench.reach().join(member)
    first = await fence_of(membership, 3)
    assert await fence_of(membership, 3) > first
    assert await membership.owners() == {3: member}


async def test_a_fence_that_would_not_fit_is_refused(bench: Bench) -> None:
    membership = await bench.reach().join(fresh())
    assert await fence_of(membership, 3, above=FENCE_LIMIT - 2) == FENCE_LIMIT - 1
    with pytest.raises(FencesExhausted):
        await membership.acquire(3)


async def test_renewals_keep_what_is_held(bench: Bench) -> None:
    member = fresh()
    membership = await bench.reach().join(member)
    await fence_of(membership, 3)
    for _ in range(5):
        await membership.renew()
    assert await membership.owners() == {3: member}


async def test_after_its_end_every_verb_but_leaving_says_so(bench: Bench) -> None:
    membership = await bench.reach().join(fresh())
    await fence_of(membership, 3)
    await bench.expire(membership)
    assert await bench.reach().owners() == {}
    assert await bench.reach().members() == frozenset()
    for _ in range(2):
        await says_it_is_over(membership)
    await membership.leave()


async def test_the_end_is_final_though_the_next_session_lives(bench: Bench) -> None:
    old = await bench.reach().join(fresh())
    await bench.expire(old)
    member = fresh()
    await fence_of(await bench.reach().join(member), 3)
    await says_it_is_over(old)
    await old.leave()
    assert await bench.reach().owners() == {3: member}


async def test_leaving_frees_all_and_can_be_said_twice(bench: Bench) -> None:
    membership = await bench.reach().join(fresh())
    for shard in range(5):
        await fence_of(membership, shard)
    await membership.leave()
    await membership.leave()
    assert await bench.reach().owners() == {}
    await says_it_is_over(membership)


async def test_who_withdraws_counts_no_more_and_keeps_what_it_has_until_it_releases_it(bench: Bench) -> None:
    coordinator = bench.reach()
    membership = await coordinator.join("a")
    await membership.acquire(3)
    await membership.acquire(4)
    for _ in range(2):
        await membership.withdraw()
        assert await coordinator.members() == await membership.members() == frozenset()
    await membership.renew()
    await membership.release(4)
    assert await coordinator.owners() == {3: "a"}
    await membership.leave()
    with pytest.raises(LeaseLost):
        await membership.withdraw()
    again = await bench.reach().join("b")
    assert await again.members() == {"b"}
    await again.leave()


async def test_releasing_what_is_not_held_changes_nothing(bench: Bench) -> None:
    member = fresh()
    membership = await bench.reach().join(member)
    await fence_of(membership, 3)
    await membership.release(4)
    assert await membership.owners() == {3: member}


async def test_an_id_that_lives_cannot_join_again(bench: Bench) -> None:
    member = fresh()
    await bench.reach().join(member)
    with pytest.raises(CoordinatorError):
        await bench.reach().join(member)


async def says_it_is_over(membership: Membership) -> None:
    verbs: list[Callable[[], Awaitable[object]]] = [
        membership.renew,
        membership.members,
        membership.owners,
        lambda: membership.acquire(3),
        lambda: membership.release(3),
    ]
    for verb in verbs:
        with pytest.raises(LeaseLost):
            await verb()


# Several members.


async def test_members_are_those_who_joined_and_neither_left_nor_ended(crowd: Bench) -> None:
    names = [fresh() for _ in range(3)]
    ada, bob, cyd = [await crowd.reach().join(name) for name in names]
    assert await ada.members() == set(names)
    await bob.leave()
    assert await ada.members() == {names[0], names[2]}
    await crowd.expire(ada, cyd)
    assert await cyd.members() == {names[2]}


async def test_two_members_never_hold_one_shard(crowd: Bench) -> None:
    ada, bob = await crowd.reach().join(fresh()), await crowd.reach().join(fresh())
    held = {shard: await fence_of(ada if shard % 2 else bob, shard) for shard in range(64)}
    assert len(held) == 64
    for shard in range(64):
        assert await (bob if shard % 2 else ada).acquire(shard) is None


async def test_a_refusal_takes_nothing_from_the_holder(crowd: Bench) -> None:
    name = fresh()
    ada, bob = await crowd.reach().join(name), await crowd.reach().join(fresh())
    fence = await fence_of(ada, 3)
    assert await bob.acquire(3, above=fence + 1_000) is None
    assert (await bob.owners())[3] == name


async def test_a_release_frees_at_once_and_the_next_fence_is_greater(crowd: Bench) -> None:
    ada, bob = await crowd.reach().join(fresh()), await crowd.reach().join(fresh())
    fence = await fence_of(ada, 3)
    await ada.release(3)
    assert await fence_of(bob, 3) > fence


async def test_a_release_leaves_alone_what_another_holds(crowd: Bench) -> None:
    name = fresh()
    ada, bob = await crowd.reach().join(fresh()), await crowd.reach().join(name)
    await fence_of(bob, 3)
    await ada.release(3)
    assert await ada.owners() == {3: name}


async def test_the_shards_of_a_session_that_ended_are_free_under_greater_fences(crowd: Bench) -> None:
    name = fresh()
    ada, bob = await crowd.reach().join(fresh()), await crowd.reach().join(name)
    fences = [await fence_of(ada, shard) for shard in range(4)]
    await crowd.expire(ada, bob)
    assert await bob.owners() == {}
    for shard, fence in enumerate(fences):
        assert await fence_of(bob, shard) > fence
    assert await bob.owners() == dict.fromkeys(range(4), name)
    await says_it_is_over(ada)
