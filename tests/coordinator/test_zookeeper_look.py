from collections.abc import Callable
from typing import Any

import pytest

from .conftest import counted

pytestmark = pytest.mark.real


async def test_who_only_looks_makes_nothing(reach: Callable[..., Any]) -> None:
    coordinator = reach()
    assert await coordinator.members() == frozenset()
    assert await coordinator.owners() == {}
    connection, look = coordinator._looking
    assert await connection.ask(lambda client: client.exists_async(look._tree.root)) == [None]


async def test_an_owner_that_went_and_came_again_between_two_looks_is_seen(reach: Callable[..., Any]) -> None:
    ada, bob, onlooker = await reach().join(), await reach().join(), reach()
    await ada.acquire(3)
    assert await onlooker.owners() == {3: ada.member}
    await ada.release(3)
    await bob.acquire(3)
    assert await onlooker.owners() == {3: bob.member}


async def test_owners_that_stay_are_not_read_again(reach: Callable[..., Any]) -> None:
    ada, onlooker = await reach().join(), reach()
    for shard in range(64):
        await ada.acquire(shard)
    first = await onlooker.owners()
    connection, _ = onlooker._looking
    sent = counted(connection)
    assert await onlooker.owners() == first == dict.fromkeys(range(64), ada.member)
    assert len(sent) == 2
    await ada.release(63)
    assert await onlooker.owners() == dict.fromkeys(range(63), ada.member)
    assert len(sent) == 4


async def test_of_owners_that_change_only_the_new_ones_are_read(reach: Callable[..., Any]) -> None:
    ada, bob, onlooker = await reach().join(), await reach().join(), reach()
    for shard in range(32):
        await ada.acquire(shard)
    await onlooker.owners()
    sent = counted(onlooker._looking[0])
    for shard in (3, 4):
        await ada.release(shard)
    await bob.acquire(40)
    left = dict.fromkeys(set(range(32)) - {3, 4}, ada.member)
    assert await onlooker.owners() == left | {40: bob.member}
    assert len(sent) == 2 + 1
    await bob.acquire(3)
    await ada.release(5)
    await bob.acquire(5)
    assert await onlooker.owners() == left | dict.fromkeys((3, 5, 40), bob.member)


async def test_what_does_not_belong_there_is_left_out(reach: Callable[..., Any]) -> None:
    ada = await reach().join()
    await ada.acquire(3)
    owners = ada._tree.owners
    await ada._connection.ask(lambda client: client.create_async(f"{owners}/notes", b""))
    assert await ada.owners() == {3: ada.member}
