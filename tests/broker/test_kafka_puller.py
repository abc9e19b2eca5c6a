"""The thread that owns a consumer: what it feeds follows from the last order, at a real broker."""

import asyncio
import queue
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer
from minutewheel.broker.kafka_puller import Feed, Flow, Order, Puller
from minutewheel.broker.wire import Message, Record

PATIENCE_S = 30


def pulling(servers: str) -> tuple[Puller, "queue.SimpleQueue[list[Feed]]"]:
    fed: queue.SimpleQueue[list[Feed]] = queue.SimpleQueue()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "enable.partition.eof": True})
    return Puller(consumer, fed.put, poll_ms=20, name="test"), fed


def until(fed: "queue.SimpleQueue[list[Feed]]", holds: Callable[[Feed], bool]) -> list[Feed]:
    """All feeds up to the first of which something holds."""
    found: list[Feed] = []
    while not found or not holds(found[-1]):
        found += fed.get(timeout=PATIENCE_S)
    return found


@pytest.mark.real
async def test_feeds_bear_the_turn_of_the_order_that_they_follow_from(corner: Any) -> None:
    broker = await corner.open()
    topic = await corner.topic(broker)
    headers = (("a", b"1"), ("a", None), ("größe", b""))
    await broker.produce([Message(topic, b"k", b"%d" % n, headers, 0) for n in range(10)])
    puller, fed = pulling(corner.connection.servers)
    place = (topic, 0)
    puller.order(Order(place, 6, 1))
    first = await asyncio.to_thread(until, fed, lambda feed: feed.at_end)
    puller.order(Order(place, 2, 2))
    second = await asyncio.to_thread(until, fed, lambda feed: feed.turn == 2 and feed.at_end)
    assert [record.offset for feed in first for record in feed.records] == [6, 7, 8, 9]
    assert [record.offset for feed in second if feed.turn == 2 for record in feed.records] == list(range(2, 10))
    assert {(feed.next_offset, feed.end_offset) for feed in (first[-1], second[-1])} == {(10, 10)}
    record: Record = second[-1].records[0] if second[-1].records else first[0].records[0]
    assert (record.topic, record.partition, record.key, record.headers) == (topic, 0, b"k", headers)
    await asyncio.to_thread(puller.close)


@pytest.mark.real
async def test_a_paused_place_feeds_nothing_until_it_flows_again(corner: Any) -> None:
    broker = await corner.open()
    topic = await corner.topic(broker, 2)
    puller, fed = pulling(corner.connection.servers)
    still, other = (topic, 0), (topic, 1)
    for place in (still, other):
        puller.order(Order(place, 0, 1))
    puller.order(Flow(still, paused=True))
    # The second of these stands behind the first at the broker, and comes all the same.
    await broker.produce([Message(topic, None, b"", (), 0)])
    await broker.produce([Message(topic, None, b"", (), 1)])
    before = await asyncio.to_thread(until, fed, lambda feed: feed.place == other and bool(feed.records))
    puller.order(Flow(still, paused=False))
    after = await asyncio.to_thread(until, fed, lambda feed: feed.place == still and bool(feed.records))
    assert not [feed for feed in before if feed.place == still and feed.records]
    assert len(after[-1].records) == 1
    await asyncio.to_thread(puller.close)


async def test_it_ends_while_it_waits_for_an_order_and_while_it_follows_in_vain() -> None:
    for orders in ([], [Order(("t", 0), 0, 1)]):
        puller, _ = pulling("127.0.0.1:1")
        for order in orders:
            puller.order(order)
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(puller.close)
