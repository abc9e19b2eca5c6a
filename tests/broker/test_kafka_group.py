"""Case 42: a slow handler in a group, a rebalance meanwhile, and commits after a loss."""

import asyncio
from typing import Any

import pytest
from minutewheel.broker.errors import NotAssigned
from minutewheel.broker.kafka import KafkaBroker
from minutewheel.broker.kafka_group import KafkaMember
from minutewheel.broker.wire import Message, Record

pytestmark = pytest.mark.real
PATIENCE_S = 40
SESSION_MS = 6_000


async def polled(member: KafkaMember, count: int) -> list[Record]:
    found: list[Record] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            found += await member.poll(100, 1_000)
    return found


async def filled(broker: KafkaBroker, topic: str, partitions: int, each: int) -> None:
    await broker.produce([Message(topic, None, b"%d" % n, (), p) for p in range(partitions) for n in range(each)])


async def test_case_42_a_member_with_a_slow_handler_stays_and_commits_nothing_that_it_lost(corner: Any) -> None:
    broker = await corner.open(session_ms=SESSION_MS)
    topic = await corner.topic(broker, 2)
    await filled(broker, topic, 2, 3)
    group = f"{corner.prefix}-workers"
    slow = await broker.join(group, [topic], "slow")
    in_hand = await polled(slow, 6)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    other = await broker.join(group, [topic], "other")
    again: list[Record] = []
    # The handler runs for longer than a session: its member takes nothing, and stays.
    while loop.time() < begun + SESSION_MS / 1_000 + 3 or not again:
        assert await slow.poll(0, 0) == []
        again += await other.poll(100, 100)
        assert loop.time() < begun + PATIENCE_S
    (lost,) = other.assigned()
    (kept,) = slow.assigned()
    assert {lost, kept} == {(topic, 0), (topic, 1)}
    assert [(r.topic, r.partition, r.offset) for r in again] == [(*lost, n) for n in range(3)]
    await slow.commit({(r.topic, r.partition): 3 for r in in_hand})
    await slow.leave()
    await other.leave()
    heir = await broker.join(group, [topic], "heir")
    # What was lost and never committed by its owner comes again; what was kept and committed does not.
    assert {(r.topic, r.partition) for r in await polled(heir, 3)} == {lost}
    assert await heir.poll(100, 500) == []


async def test_a_member_that_has_enough_takes_no_more_and_loses_nothing_by_it(corner: Any) -> None:
    broker = await corner.open(session_ms=SESSION_MS)
    topic = await corner.topic(broker)
    await filled(broker, topic, 1, 6_000)
    member = await broker.join(f"{corner.prefix}-workers", [topic], "one")
    found = await polled(member, 1)
    for _ in range(20):
        assert await member.poll(0, 0) == []
    found += await polled(member, 6_000 - len(found))
    assert [record.offset for record in found] == list(range(6_000))


async def test_one_that_left_takes_no_part(corner: Any) -> None:
    broker = await corner.open(session_ms=SESSION_MS)
    topic = await corner.topic(broker)
    member = await broker.join(f"{corner.prefix}-workers", [topic], "one")
    await member.leave()
    await member.leave()
    assert member.assigned() == frozenset()
    with pytest.raises(NotAssigned):
        await member.poll(1, 0)
    with pytest.raises(NotAssigned):
        await member.commit({(topic, 0): 1})
