import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from minutewheel.broker.due import NO_OPTIONS, due_message
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.port import Bounds, Broker
from minutewheel.broker.wire import Message
from minutewheel.loadtest import run as module
from minutewheel.loadtest.crew import RunFailed
from minutewheel.loadtest.recording import QUEUE
from minutewheel.loadtest.run import Order, deliveries, environment, run_load
from minutewheel.settings import Settings
from minutewheel.store.record import NO_HEADERS, Filed, pack
from minutewheel.wiring import opened


def order(folder: Path) -> Order:
    return Order(
        shape="steady",
        rate=20,
        length_ms=60_000,
        seed=1,
        dispatchers=1,
        workers=1,
        plan=(),
        command="loadtest run",
        dispatch=("dev",),
        options=(f"--data={folder}",),
        variables={"MINUTEWHEEL_DURABILITY": "kill"},
    )


async def test_what_is_published_is_read_from_where_the_run_began(embedded_settings: Settings) -> None:
    def message(number: int) -> Message:
        record = pack(Filed(1, number, 1, 2, 0, f"t/{number}", QUEUE, NO_OPTIONS, NO_HEADERS, b"x"))
        return due_message(installation.topics, 5, 77, 1_000, number, record)

    async with opened(embedded_settings) as installation:
        await installation.declare([QUEUE])
        topic = installation.topics.due(QUEUE)
        await installation.broker.produce([message(n) for n in range(20)])
        begins = [each.end for each in await installation.broker.bounds(topic, range(64))]
        before_ms = installation.clock.now_ms()
        foreign = Message(topic, b"t/77", b"none of ours")
        await installation.broker.produce([*(message(n) for n in range(20, 50)), message(20), foreign])
        found = await deliveries(installation.broker, topic, begins)
        assert sorted(one.filing for one in found) == [20, *range(20, 50)]
        assert {one.shard for one in found} == {5}
        assert {one.key for one in found} == {f"t/{n}" for n in range(20, 50)}
        assert all(before_ms <= one.at_ms <= installation.clock.now_ms() for one in found)


async def test_an_interrupted_run_reports_on_the_part_that_ran(embedded_settings: Settings, tmp_path: Path) -> None:
    stop, told = asyncio.Event(), dict[str, int]()

    def tell(name: str, completed: int) -> None:
        told[name] = completed
        if told.get("done", 0) >= 5:
            stop.set()

    report = await run_load(embedded_settings, order(embedded_settings.data), tmp_path, stop, tell)
    assert not report.complete
    assert report.counts.lost == report.counts.early == report.counts.duplicated == 0
    assert 5 <= report.counts.done <= report.counts.fired <= report.counts.accepted < 1_200
    assert report.duration_ms < 60_000
    assert len({(one.shard, one.member) for one in report.tenures}) == 64
    assert {one.name for one in report.processes} <= {"dispatcher 0", "worker 0", "load test"}


async def test_interrupted_before_it_began_there_is_nothing_to_report(
    embedded_settings: Settings, tmp_path: Path
) -> None:
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(RunFailed, match="before the load began"):
        await run_load(embedded_settings, order(embedded_settings.data), tmp_path, stop, lambda *_: None)


def test_the_environment_says_what_figures_depend_on(embedded_settings: Settings) -> None:
    found = environment(embedded_settings, order(embedded_settings.data))
    assert found["mode"] == "embedded"
    assert found["rate"] == "20 tasks/s for 60 s"
    assert found["python"].startswith("CPython 3")
    assert {"os", "cpus", "msgspec"} <= found.keys()


class Stumbling:
    """A broker that fails so often before it answers with an empty topic."""

    def __init__(self, failures: int) -> None:
        self.left = failures

    async def bounds(self, _topic: str, partitions: Sequence[int]) -> list[Bounds]:
        if self.left:
            self.left -= 1
            raise BrokerError("not now")
        return [Bounds(0, 0, 1) for _ in partitions]


async def test_a_broker_that_stumbles_is_asked_again_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Stumbling(2)
    assert await deliveries(cast("Broker", broker), "due", [0] * 64) == []
    assert broker.left == 0
    monkeypatch.setattr(module, "READ_S", 0.1)
    with pytest.raises(RunFailed, match="could not be read back"):
        await deliveries(cast("Broker", Stumbling(1_000)), "due", [0] * 64)
