"""What any broker must do, over each twin.

A twin stands behind `Installation`: what is asked of a kind of broker besides the port. One that answers late says
so with `patience_ms`, for which a poll may wait; the embedded twins answer at once, so that nothing here sleeps.
"""

import asyncio
import itertools
import os
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from minutewheel.broker.errors import BrokerError, NotAssigned, OffsetGone, Unpublishable
from minutewheel.broker.kafka import KafkaBroker
from minutewheel.broker.kafka_admin import Admin
from minutewheel.broker.kafka_client import Connection
from minutewheel.broker.partitioner import murmur2
from minutewheel.broker.port import Broker, GroupMember, Produced
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message, Record
from minutewheel.deploy.services import OnDemand
from minutewheel.store.sqlite_connection import OneThread, at_once

LONG_MS = 60_000
RUN = os.urandom(4).hex()
"""In the names of all topics and groups: real services are shared, and keep what earlier runs left."""
Place = tuple[str, int]
Batch = list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.now_ms


class Installation(Protocol):
    """One kind of broker, set up for one test."""

    patience_ms: int
    histories: int
    """How many of the random histories it is put through."""

    async def connect(self) -> Broker:
        """A client of its own, as another process would have."""

    async def outlive_sessions(self) -> None:
        """Let the sessions of silent members run out."""

    async def delete_topic(self, topic: str) -> None: ...

    async def close(self) -> None: ...


class Disk:
    """One file, several connections, each in its thread."""

    patience_ms = 0
    histories = 12

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "broker.sqlite")
        self.clock = Clock()
        self.clients: list[tuple[SqliteBroker, OneThread]] = []

    async def connect(self) -> SqliteBroker:
        call = OneThread("broker")
        broker = await SqliteBroker.open(self.path, call, self.clock, synchronous="OFF")
        self.clients.append((broker, call))
        return broker

    async def outlive_sessions(self) -> None:
        self.clock.now_ms += 10_001

    async def delete_topic(self, topic: str) -> None:
        await self.clients[0][0].delete_topic(topic)

    async def close(self) -> None:
        for broker, call in self.clients:
            await broker.close()
            await call.close()


class Memory:
    """In memory, at once: all clients share one connection, as in a simulation."""

    patience_ms = 0
    histories = 12

    def __init__(self) -> None:
        self.clock = Clock()
        self.broker: SqliteBroker | None = None

    async def connect(self) -> SqliteBroker:
        if self.broker is None:
            self.broker = await SqliteBroker.open(":memory:", at_once, self.clock)
        return self.broker

    async def outlive_sessions(self) -> None:
        self.clock.now_ms += 10_001

    async def delete_topic(self, topic: str) -> None:
        await (await self.connect()).delete_topic(topic)

    async def close(self) -> None:
        await (await self.connect()).close()


class Cluster:
    """Real brokers, whose clocks can't be set: a session is outlived by waiting, so few histories are tried."""

    patience_ms = 250
    histories = 2
    session_ms = 6_000
    """The least that a broker allows by default."""

    def __init__(self, servers: str) -> None:
        self.connection = Connection(servers)
        self.clients: list[KafkaBroker] = []

    async def connect(self) -> KafkaBroker:
        broker = await KafkaBroker.open(self.connection, f"own-{RUN}", session_ms=self.session_ms)
        self.clients.append(broker)
        return broker

    async def outlive_sessions(self) -> None:
        # librdkafka looks once a second who has not polled for too long.
        await asyncio.sleep(self.session_ms / 1_000 + 1.5)

    async def delete_topic(self, topic: str) -> None:
        await self.clients[0].delete_topic(topic)

    async def close(self) -> None:
        await asyncio.gather(*(broker.close() for broker in self.clients))


@pytest.fixture(scope="session")
def cluster(services: OnDemand) -> Iterator[str]:
    """The address of the real brokers, from which this run's topics are taken away in the end."""

    async def clear() -> None:
        admin = Admin(Connection(services.kafka))
        for name in await admin.topics():
            if name.startswith((f"test-{RUN}.", f"own-{RUN}.")):
                await admin.delete(name)

    yield services.kafka
    asyncio.run(clear())


def build(kind: str, request: pytest.FixtureRequest, folder: Path) -> Installation:
    if kind == "real":
        return Cluster(request.getfixturevalue("cluster"))
    return Disk(folder) if kind == "disk" else Memory()


@pytest.fixture(params=["disk", "memory", pytest.param("real", marks=pytest.mark.real)])
async def installation(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Installation]:
    made = build(request.param, request, tmp_path)
    await made.connect()
    yield made
    await made.close()


@pytest.fixture
async def broker(installation: Installation) -> Broker:
    return await installation.connect()


_numbers = itertools.count()


async def new_topic(broker: Broker, partitions: int = 4) -> str:
    name = f"test-{RUN}.{next(_numbers)}"
    await broker.create_topics({name: partitions})
    return name


async def produced(broker: Broker, messages: Sequence[Message]) -> list[Produced]:
    answers = await broker.produce(messages)
    assert all(isinstance(answer, Produced) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Produced)]


async def read_all(broker: Broker, topic: str, partition: int, limit: int = 1_000) -> list[Record]:
    """As a reader does it, who knows that offsets may have gaps."""
    (bounds,) = await broker.bounds(topic, [partition])
    records: list[Record] = []
    offset = bounds.start
    while offset < bounds.end:
        fetched = await broker.fetch(topic, partition, offset, limit, LONG_MS)
        assert fetched.next_offset > offset
        assert [record.offset for record in fetched.records] == sorted(
            {record.offset for record in fetched.records if offset <= record.offset < fetched.next_offset}
        )
        records += fetched.records
        offset = fetched.next_offset
    return records


def values(records: Sequence[Record]) -> list[bytes | None]:
    return [record.value for record in records]


# ---- produce and fetch


async def test_what_is_acknowledged_is_read_in_its_order(broker: Broker) -> None:
    topic = await new_topic(broker)
    sent = [Message(topic, b"k", b"%d" % n, (), n % 3) for n in range(100)]
    answers = await produced(broker, sent)
    for partition in range(3):
        records = await read_all(broker, topic, partition, limit=7)
        assert values(records) == [message.value for message in sent if message.partition == partition]
        stood = [(a.partition, a.offset, a.time_ms) for a in answers if a.partition == partition]
        assert [(r.partition, r.offset, r.time_ms) for r in records] == stood
    assert await read_all(broker, topic, 3) == []


async def test_nothing_to_produce_is_nothing_to_answer(broker: Broker) -> None:
    assert await broker.produce([]) == []


async def test_the_key_chooses_the_partition_as_kafka_does(broker: Broker) -> None:
    topic = await new_topic(broker, 7)
    keys = [b"acme/order-%d" % n for n in range(50)] + [b""]
    answers = await produced(broker, [Message(topic, key, b"") for key in keys])
    assert [answer.partition for answer in answers] == [(murmur2(key) & 0x7FFFFFFF) % 7 for key in keys]


async def test_a_message_without_key_goes_to_any_partition(broker: Broker) -> None:
    topic = await new_topic(broker, 3)
    await produced(broker, [Message(topic, None, b"%d" % n) for n in range(9)])
    found = [record for partition in range(3) for record in await read_all(broker, topic, partition)]
    assert sorted(values(found), key=str) == [b"%d" % n for n in range(9)]


@pytest.mark.parametrize("key", [None, b"", b"\x00\xff"])
@pytest.mark.parametrize("value", [None, b"", b"\x00\xff"])
async def test_null_and_empty_are_kept_apart(broker: Broker, key: bytes | None, value: bytes | None) -> None:
    topic = await new_topic(broker)
    await produced(broker, [Message(topic, key, value, (), 1)])
    (record,) = await read_all(broker, topic, 1)
    assert (record.key, record.value, record.headers) == (key, value, ())


async def test_headers_come_back_exactly(broker: Broker) -> None:
    topic = await new_topic(broker)
    headers = (
        ("b", b"1"),
        ("a", None),
        ("b", b""),
        ("b", b"1"),
        ("", b"\xff\xfe"),
        ("größe", b"\x00"),
        ("large", b"x" * 65_536),
    )
    await produced(broker, [Message(topic, None, None, headers, 0)])
    (record,) = await read_all(broker, topic, 0)
    assert record.headers == headers


async def test_one_that_can_not_be_published_does_not_hold_up_the_others(broker: Broker) -> None:
    topic = await new_topic(broker)
    batch = [
        Message(topic, b"a", b"1", (), 0),
        Message("no.such", b"b", b"2"),
        Message(topic, b"c", b"x" * 3_000_000, (), 0),
        Message(topic, b"d", b"3", (("h", b"x" * 3_000_000),), 0),
        Message(topic, b"e", b"4", (), 0),
    ]
    answers = await broker.produce(batch)
    reasons = [answer.reason if isinstance(answer, Unpublishable) else "" for answer in answers]
    assert reasons == ["", "no_such_topic", "too_large", "too_large", ""]
    assert values(await read_all(broker, topic, 0)) == [b"1", b"4"]


async def test_a_batch_of_nothing_publishable_is_answered_too(broker: Broker) -> None:
    answers = await broker.produce([Message("no.such", None, b""), Message("no.such", None, b"x" * 3_000_000)])
    assert [answer.reason for answer in answers if isinstance(answer, Unpublishable)] == ["no_such_topic", "too_large"]


async def test_a_fetch_at_the_end_with_no_wait_is_empty_at_once(broker: Broker) -> None:
    topic = await new_topic(broker)
    await produced(broker, [Message(topic, None, b"", (), 2)])
    (bounds,) = await broker.bounds(topic, [2])
    fetched = await broker.fetch(topic, 2, bounds.end, 10, 0)
    assert (list(fetched.records), fetched.next_offset, fetched.end_offset) == ([], bounds.end, bounds.end)
    assert fetched.incarnation == bounds.incarnation


async def test_a_fetch_that_waits_in_vain_ends(broker: Broker) -> None:
    topic = await new_topic(broker)
    fetched = await broker.fetch(topic, 0, 0, 10, 20)
    assert (list(fetched.records), fetched.next_offset) == ([], 0)


async def test_a_waiting_fetch_wakes_for_a_record_of_its_partition(broker: Broker) -> None:
    topic = await new_topic(broker)
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(broker.fetch(topic, n, 0, 10, LONG_MS)) for n in range(4)]
        await broker.bounds(topic, [0])
        await produced(broker, [Message(topic, None, b"other", (), 1)])
        assert values((await waiting[1]).records) == [b"other"]
        assert not any(waiting[n].done() for n in (0, 2, 3))
        await produced(broker, [Message(topic, None, b"rest", (), n) for n in (0, 2, 3)])
    assert values(waiting[3].result().records) == [b"rest"]


async def test_a_waiting_fetch_sees_what_another_client_produces(installation: Installation, broker: Broker) -> None:
    topic, other = await new_topic(broker), await installation.connect()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(broker.fetch(topic, n, 0, 10, LONG_MS)) for n in range(4)]
        await broker.bounds(topic, [0])
        for n in (3, 0, 1, 2):
            await produced(other, [Message(topic, None, b"%d" % n, (), n)])
            assert values((await waiting[n]).records) == [b"%d" % n]


async def test_a_cancelled_wait_leaves_the_others_waiting(installation: Installation, broker: Broker) -> None:
    topic, other = await new_topic(broker), await installation.connect()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(broker.fetch(topic, n, 0, 10, LONG_MS)) for n in range(4)]
        for n in range(3):
            await broker.bounds(topic, [0])
            waiting[n].cancel()
        await produced(other, [Message(topic, None, b"late", (), 3)])
        assert values((await waiting[3]).records) == [b"late"]


async def test_bounds_follow_the_log(broker: Broker) -> None:
    topic = await new_topic(broker)
    await produced(broker, [Message(topic, None, b"", (), 3) for _ in range(5)])
    empty, full = await broker.bounds(topic, [0, 3])
    assert (empty.start, empty.end) == (0, 0)
    assert full.start == 0
    assert full.end >= 5
    assert full.incarnation == empty.incarnation >= 1


async def test_an_offset_that_the_log_does_not_have_is_an_alarm(broker: Broker) -> None:
    topic = await new_topic(broker)
    with pytest.raises(OffsetGone):
        await broker.fetch(topic, 0, 17, 10, 0)
    with pytest.raises(OffsetGone):
        await broker.fetch(topic, 0, 17, 10, LONG_MS)


async def test_a_topic_that_is_not_there_is_an_error_of_the_broker(broker: Broker) -> None:
    with pytest.raises(BrokerError):
        await broker.fetch("no.such", 0, 0, 10, 0)
    with pytest.raises(BrokerError):
        await broker.bounds("no.such", [0])


async def test_topics_are_created_once(installation: Installation, broker: Broker) -> None:
    topic, other = await new_topic(broker, 3), await installation.connect()
    await other.create_topics({topic: 5, topic + ".b": 2})
    found = await broker.topics()
    assert (found[topic], found[topic + ".b"]) == (3, 2)


async def test_a_topic_made_anew_is_another_incarnation(installation: Installation, broker: Broker) -> None:
    topic, other = await new_topic(broker), await installation.connect()
    await produced(broker, [Message(topic, None, b"old", (), 0)])
    (before,) = await other.bounds(topic, [0])
    await installation.delete_topic(topic)
    assert topic not in await other.topics()
    await broker.create_topics({topic: 4})
    (after,) = await other.bounds(topic, [0])
    assert after.incarnation > before.incarnation
    await produced(broker, [Message(topic, None, b"new", (), 0)])
    assert values(await read_all(other, topic, 0)) == [b"new"]


async def test_the_time_of_a_record_is_the_brokers(broker: Broker) -> None:
    topic = await new_topic(broker)
    before = await broker.time_ms()
    (answer,) = await produced(broker, [Message(topic, None, b"", (), 0)])
    assert before <= answer.time_ms <= await broker.time_ms()


# Neither a NUL nor half a character: Kafka's own driver can't carry them in a name.
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
HEADERS = st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=8)), max_size=5).map(tuple)
BATCH = st.lists(
    st.tuples(st.integers(0, 3), st.none() | st.binary(max_size=8), st.none() | st.binary(max_size=8), HEADERS),
    max_size=12,
)


@pytest.mark.parametrize("installation", ["disk", "memory"], indirect=True)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(BATCH, max_size=6), st.integers(1, 7))
async def test_the_logs_are_what_a_list_a_partition_would_be(broker: Broker, batches: list[Batch], limit: int) -> None:
    await check_logs(broker, batches, limit)


@pytest.mark.real
@pytest.mark.parametrize("installation", ["real"], indirect=True)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(BATCH, max_size=4), st.integers(1, 7))
async def test_the_real_logs_are_what_a_list_a_partition_would_be(
    broker: Broker, batches: list[Batch], limit: int
) -> None:
    await check_logs(broker, batches, limit)


async def check_logs(broker: Broker, batches: list[Batch], limit: int) -> None:
    topic = await new_topic(broker)
    model = defaultdict(list)
    for batch in batches:
        await produced(broker, [Message(topic, key, value, headers, n) for n, key, value, headers in batch])
        for partition, *content in batch:
            model[partition].append(tuple(content))
        for partition in range(4):
            records = await read_all(broker, topic, partition, limit)
            assert [(r.key, r.value, r.headers) for r in records] == model[partition]


async def test_a_purge_answers_those_who_wait_and_hides_nothing_that_was_acknowledged(broker: Broker) -> None:
    topic = await new_topic(broker)
    sent = [[Message(topic, None, b"%d.%d" % (batch, n), (), batch % 4) for n in range(50)] for batch in range(40)]
    calls = [asyncio.create_task(broker.produce(batch)) for batch in sent]
    await asyncio.sleep(0)
    broker.purge()
    answers = await asyncio.gather(*calls)
    broker.purge()
    await produced(broker, [Message(topic, None, b"after", (), 0)])
    told = [
        message.value
        for batch, each in zip(sent, answers, strict=True)
        for message, answer in zip(batch, each, strict=True)
        if isinstance(answer, Produced)
    ]
    records = [record for partition in range(4) for record in await read_all(broker, topic, partition)]
    found = Counter(values(records))
    assert Counter([*told, b"after"]) <= found
    assert set(found.values()) == {1}
    failed = [answer for each in answers for answer in each if not isinstance(answer, Produced)]
    assert not any(isinstance(answer, Unpublishable) for answer in failed)


async def test_batches_produced_at_once_are_all_there_each_in_its_order(broker: Broker) -> None:
    topic = await new_topic(broker)
    batches = [[Message(topic, b"%d" % b, b"%d" % n, (), b % 4) for n in range(20)] for b in range(40)]
    async with asyncio.TaskGroup() as group:
        for batch in batches:
            group.create_task(produced(broker, batch))
    found = [record for partition in range(4) for record in await read_all(broker, topic, partition)]
    by_batch = defaultdict(list)
    for record in found:
        by_batch[record.key].append(record.value)
    assert by_batch == {b"%d" % b: [b"%d" % n for n in range(20)] for b in range(40)}


# ---- groups


class Reading:
    """A group under test: who got what."""

    def __init__(self, installation: Installation, broker: Broker, topic: str) -> None:
        self.installation = installation
        self.broker = broker
        self.topic = topic
        self.group = f"workers.{topic}"
        self.members: dict[str, GroupMember] = {}
        self.delivered: Counter[bytes | None] = Counter()

    async def join(self, name: str) -> GroupMember:
        client = await self.installation.connect()
        self.members[name] = await client.join(self.group, [self.topic], name)
        return self.members[name]

    async def poll(self, name: str, *, limit: int = 100, commit: bool = True) -> list[Record]:
        records = await self.members[name].poll(limit, self.installation.patience_ms)
        self.delivered.update(values(records))
        if commit:
            await self.members[name].commit(next_offsets(records))
        return records

    async def settle(self, *, commit: bool = True) -> None:
        """Poll round about until nobody gets anything more and every partition has its member."""
        quiet = 0
        while quiet < 3:
            got = [await self.poll(name, commit=commit) for name in self.members]
            held = [place for member in self.members.values() for place in member.assigned()]
            assert len(held) == len(set(held))
            quiet = quiet + 1 if not any(got) and len(held) == 4 else 0

    async def produce(self, names: Sequence[str]) -> None:
        batch = [Message(self.topic, None, name.encode(), (), n % 4) for n, name in enumerate(names)]
        await produced(self.broker, batch)


def next_offsets(records: Sequence[Record]) -> dict[Place, int]:
    return {(record.topic, record.partition): record.offset + 1 for record in records}


@pytest.fixture
async def reading(installation: Installation, broker: Broker) -> Reading:
    return Reading(installation, broker, await new_topic(broker))


async def test_each_record_is_delivered_to_one_of_the_members(reading: Reading) -> None:
    for name in ("a", "b", "c"):
        await reading.join(name)
    await reading.settle()
    await reading.produce([f"{n}" for n in range(200)])
    await reading.settle()
    assert reading.delivered == Counter(f"{n}".encode() for n in range(200))
    assert sorted(len(member.assigned()) for member in reading.members.values()) == [1, 1, 2]


async def test_a_poll_keeps_the_order_of_each_partition_and_leaves_none_out(reading: Reading) -> None:
    await reading.produce([f"{n}" for n in range(400)])
    await reading.join("a")
    got: list[Record] = []
    polls = []
    while len(got) < 400:
        polls.append(await reading.poll("a", limit=40))
        got += polls[-1]
    for partition in range(4):
        offsets = [record.offset for record in got if record.partition == partition]
        assert offsets == sorted(offsets)
    assert all(len(poll) <= 40 for poll in polls)
    early = Counter(record.partition for record in got[:200])
    assert len(early) == 4, "one partition starves the others"


async def test_a_waiting_poll_wakes_for_a_record(reading: Reading) -> None:
    await reading.join("a")
    await reading.settle()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(reading.members["a"].poll(10, LONG_MS))
        await reading.broker.bounds(reading.topic, [0])
        await reading.produce(["x"])
    assert values(waiting.result()) == [b"x"]


async def test_a_poll_that_waits_in_vain_ends(reading: Reading) -> None:
    member = await reading.join("a")
    assert await member.poll(10, 20) == []


async def test_what_a_dead_member_did_not_commit_is_delivered_again(reading: Reading) -> None:
    await reading.produce([f"{n}" for n in range(8)])
    await reading.join("dies")
    await reading.settle(commit=False)
    assert sum(reading.delivered.values()) == 8
    await reading.members.pop("dies").commit({(reading.topic, 0): 2, (reading.topic, 1): 1})
    await reading.installation.outlive_sessions()
    await reading.join("lives")
    await reading.settle()
    again = {value for value, times in reading.delivered.items() if times == 2}
    assert again == {b"5", b"2", b"6", b"3", b"7"}


async def test_a_group_starts_where_it_got_to(reading: Reading) -> None:
    await reading.produce([f"{n}" for n in range(8)])
    await reading.join("a")
    await reading.settle()
    await reading.members.pop("a").leave()
    await reading.produce(["new"])
    await reading.join("b")
    await reading.settle()
    assert reading.delivered == Counter([b"new", *(f"{n}".encode() for n in range(8))])


async def test_other_groups_do_not_share_its_progress(reading: Reading) -> None:
    await reading.produce(["x"])
    await reading.join("a")
    await reading.settle()
    other = await reading.broker.join(f"audit.{reading.topic}", [reading.topic], "a")
    got: list[Record] = []
    while not got:
        got = await other.poll(10, reading.installation.patience_ms)
    assert values(got) == [b"x"]


async def test_a_member_that_leaves_hands_over_at_once(reading: Reading) -> None:
    await reading.join("a")
    await reading.join("b")
    await reading.settle()
    leaves = reading.members.pop("a")
    left = leaves.assigned()
    await leaves.leave()
    assert leaves.assigned() == frozenset()
    with pytest.raises(NotAssigned):
        await leaves.poll(10, 0)
    await reading.settle()
    assert left <= reading.members["b"].assigned()


async def test_a_partition_is_given_up_before_another_takes_it(reading: Reading) -> None:
    a = await reading.join("a")
    await reading.settle()
    b = await reading.join("b")
    assert not a.assigned() & b.assigned()
    await reading.poll("b")
    assert not a.assigned() & b.assigned()
    await reading.settle()
    assert (len(a.assigned()), len(b.assigned())) == (2, 2)


async def test_commits_of_lost_partitions_are_left_out(reading: Reading) -> None:
    await reading.produce([f"{n}" for n in range(8)])
    a = await reading.join("a")
    await reading.settle(commit=False)
    await reading.join("b")
    await reading.settle(commit=False)
    lost = reading.members["b"].assigned()
    kept = a.assigned()
    await a.commit(dict.fromkeys(lost | kept, 2))
    for member in reading.members.values():
        await member.leave()
    reading.members.clear()
    reading.delivered.clear()
    await reading.join("c")
    await reading.settle()
    by_partition = {(reading.topic, n): {f"{n}".encode(), f"{n + 4}".encode()} for n in range(4)}
    assert set(reading.delivered) == set().union(*(by_partition[place] for place in lost))


async def test_committed_offsets_only_grow(reading: Reading) -> None:
    await reading.produce([f"{n}" for n in range(40)])
    a = await reading.join("a")
    await reading.settle()
    await a.commit({(reading.topic, n): 1 for n in range(4)})
    await reading.members.pop("a").leave()
    await reading.join("b")
    await reading.settle()
    assert set(reading.delivered.values()) == {1}


async def test_a_member_that_was_thought_dead_gets_nothing_of_what_it_lost(reading: Reading) -> None:
    a = await reading.join("frozen")
    await reading.settle()
    await reading.installation.outlive_sessions()
    frozen = reading.members.pop("frozen")
    b = await reading.join("b")
    await reading.settle()
    await reading.produce([f"{n}" for n in range(8)])
    thawed = await frozen.poll(10, reading.installation.patience_ms)
    assert not a.assigned() & b.assigned()
    assert not thawed or {(r.topic, r.partition) for r in thawed} <= a.assigned()


async def test_a_topic_that_comes_later_is_read_too(reading: Reading) -> None:
    late = reading.topic + ".late"
    member = await reading.broker.join(reading.group, [reading.topic, late], "a")
    await member.poll(10, reading.installation.patience_ms)
    await reading.broker.create_topics({late: 2})
    await produced(reading.broker, [Message(late, None, b"x", (), 1)])
    got: list[Record] = []
    while not got:
        got = await member.poll(10, reading.installation.patience_ms)
    assert values(got) == [b"x"]


async def test_a_cancelled_poll_loses_nothing(reading: Reading) -> None:
    await reading.join("a")
    await reading.settle()
    await reading.produce([f"{n}" for n in range(8)])
    poll = asyncio.create_task(reading.members["a"].poll(100, LONG_MS))
    await asyncio.sleep(0)
    poll.cancel()
    done = await asyncio.gather(poll, return_exceptions=True)
    reading.delivered.update(values(done[0]) if isinstance(done[0], list) else [])
    await reading.settle()
    assert set(reading.delivered) == {f"{n}".encode() for n in range(8)}


@pytest.mark.parametrize("seed", range(12))
async def test_nothing_is_lost_over_joins_leaves_and_deaths(reading: Reading, seed: int) -> None:
    if seed >= reading.installation.histories:
        pytest.skip(f"{reading.installation.histories} histories are enough where each takes ten seconds")
    dice = random.Random(seed)
    sent: list[str] = []
    finished: set[bytes | None] = set()
    started: dict[str, list[Record]] = defaultdict(list)
    for step in range(40):
        alive = sorted(reading.members)
        deed = dice.choice(["join", "leave", "die", "poll", "poll", "poll", "produce", "produce"])
        if deed == "join" and len(alive) < 4:
            await reading.join(f"m{step}")
        elif deed in ("leave", "die") and alive:
            member = reading.members.pop(dice.choice(alive))
            if deed == "leave":
                await member.leave()
            elif dice.random() < 0.5:
                await reading.installation.outlive_sessions()
        elif deed == "poll" and alive:
            name = dice.choice(alive)
            started[name] += await reading.poll(name, limit=dice.randint(1, 9), commit=False)
            if dice.random() < 0.7:
                finished.update(values(started[name]))
                await reading.members[name].commit(next_offsets(started.pop(name)))
        elif deed == "produce":
            names = [f"{step}.{n}" for n in range(dice.randint(1, 9))]
            sent += names
            await reading.produce(names)
    for member in reading.members.values():
        await member.leave()
    reading.members.clear()
    await reading.installation.outlive_sessions()
    await reading.join("last")
    reading.delivered.clear()
    await reading.settle()
    assert set(reading.delivered) | finished == {name.encode() for name in sent}
