"""The catalogue and the log of the makings, over a list in memory for the broker."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

import pytest
from minutewheel.broker.errors import BrokerError, OffsetGone
from minutewheel.broker.kafka_admin import Described
from minutewheel.broker.kafka_catalog import Catalog, Incarnations
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message, Record


class Cluster:
    """What is there, and every question that was asked."""

    def __init__(self, **ids: str) -> None:
        self.ids = ids
        self.asked: list[set[str]] = []
        self.questioned = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    async def describe(self, names: Collection[str]) -> Mapping[str, Described | None]:
        self.asked.append(set(names))
        self.questioned.set()
        answers = {name: Described(self.ids[name], 4, 1) if name in self.ids else None for name in names}
        await self.open.wait()
        return answers


async def test_what_is_known_is_not_asked_again() -> None:
    cluster = Cluster(a="1")
    catalog = Catalog(cluster.describe)
    await catalog.find(["a", "b"])
    await catalog.find(["a"])
    assert cluster.asked == [{"a", "b"}]
    assert catalog.known("a") == Described("1", 4, 1)
    assert catalog.known("b") is None


async def test_what_is_doubted_or_looked_at_is_asked_again() -> None:
    cluster = Cluster(a="1")
    catalog = Catalog(cluster.describe)
    await catalog.find(["a"])
    catalog.doubt("a")
    await catalog.find(["a"])
    await catalog.look(["a"])
    assert cluster.asked == [{"a"}] * 3


async def test_a_topic_that_is_gone_is_forgotten() -> None:
    cluster = Cluster(a="1")
    catalog = Catalog(cluster.describe)
    await catalog.find(["a"])
    del cluster.ids["a"]
    await catalog.look(["a"])
    assert catalog.known("a") is None


async def test_those_who_come_during_a_look_share_the_next_and_see_what_was_before_their_question() -> None:
    cluster = Cluster(a="1")
    catalog = Catalog(cluster.describe)
    cluster.open.clear()
    first = asyncio.create_task(catalog.look(["a"]))
    await cluster.questioned.wait()
    cluster.ids.update(a="2", b="1")
    later = [asyncio.create_task(catalog.look([name])) for name in ("a", "b", "a")]
    await asyncio.sleep(0)
    cluster.open.set()
    await first
    await asyncio.gather(*later)
    assert cluster.asked == [{"a"}, {"a", "b"}]
    assert catalog.known("a") == Described("2", 4, 1)


async def test_one_who_is_cancelled_does_not_take_the_answer_from_the_others() -> None:
    cluster = Cluster(a="1")
    catalog = Catalog(cluster.describe)
    cluster.open.clear()
    one, other = (asyncio.create_task(catalog.look(["a"])) for _ in range(2))
    await cluster.questioned.wait()
    one.cancel()
    cluster.open.set()
    await other
    assert one.cancelled()
    assert catalog.known("a") is not None


@pytest.mark.parametrize("name", ["", "a b", "größe", "\udc80", "a\x00", "x" * 250])
async def test_a_name_that_no_topic_can_have_is_not_asked_for(name: str) -> None:
    cluster = Cluster()
    catalog = Catalog(cluster.describe)
    await catalog.find([name])
    assert cluster.asked == []
    assert catalog.known(name) is None


class Log:
    """The log of the makings, and how many readers share it."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.start = 0

    async def read(
        self, topic: str, partition: int, offset: int, limit: int, wait_ms: int
    ) -> tuple[list[Record], int, int]:
        if not self.start <= offset <= len(self.values):
            raise OffsetGone(str(offset))
        await asyncio.sleep(0)
        taken = self.values[offset : offset + 2]
        records = [Record(topic, partition, offset + n, 0, None, value) for n, value in enumerate(taken)]
        return records, offset + len(records), len(self.values)

    async def publish(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        await asyncio.sleep(0)
        self.values += [message.value for message in messages]
        return [Produced(0, len(self.values) - 1, 0)]

    def reader(self) -> Incarnations:
        return Incarnations("mw.meta", self.read, self.publish)


async def test_makings_are_numbered_as_they_are_met() -> None:
    numbers = Log().reader()
    assert await numbers.number("a", "id-1") == 1
    assert await numbers.number("a", "id-2") == 2
    assert await numbers.number("b", "id-3") == 1
    assert await numbers.number("a", "id-1") == 1


async def test_all_readers_count_the_same_whoever_writes_first_and_twice() -> None:
    log = Log()
    readers = [log.reader() for _ in range(5)]
    assert await asyncio.gather(*(reader.number("a", "id-1") for reader in readers)) == [1] * 5
    assert len(log.values) > 1, "they raced"
    assert await asyncio.gather(*(reader.number("a", "id-2") for reader in readers)) == [2] * 5
    assert await log.reader().number("a", "id-2") == 2


async def test_what_can_not_be_read_in_the_log_is_passed_over() -> None:
    log = Log()
    log.values += [None, b"\xff", b"[" * 100_000, b'{"topic": "a"}', b'{"topic": "a", "id": "id-0"}']
    assert await log.reader().number("a", "id-1") == 2


async def test_a_log_that_was_trimmed_is_an_error_and_no_gone_offset() -> None:
    log = Log()
    log.start = 3
    with pytest.raises(BrokerError) as caught:
        await log.reader().number("a", "id-1")
    assert not isinstance(caught.value, OffsetGone)


async def test_what_can_not_be_written_down_has_no_number() -> None:
    log = Log()

    async def refuse(messages: Sequence[Message]) -> list[Produced | BrokerError]:
        return [BrokerError("not now")]

    numbers = Incarnations("mw.meta", log.read, refuse)
    with pytest.raises(BrokerError, match="not now"):
        await numbers.number("a", "id-1")
