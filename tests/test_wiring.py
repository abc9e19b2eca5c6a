import asyncio
from pathlib import Path

import pytest
from minutewheel import InvalidTask, Queue, WorkerLimits, wiring
from minutewheel.broker.limits import Limits as Door
from minutewheel.broker.wire import Message
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.memory import Budget
from minutewheel.settings import Settings, load
from minutewheel.store.task import SHARDS
from minutewheel.wiring import NoDataFolder, connected, opened


def settings_of(folder: Path, **flags: object) -> Settings:
    flags = {key.replace("__", "."): value for key, value in flags.items()}
    return load({"data": folder / "data", "durability": "kill", **flags}).settings


def test_the_defaults_of_the_settings_are_those_of_the_parts() -> None:
    settings = Settings()
    assert wiring.dispatcher_limits(settings) == Limits()
    assert wiring.worker_limits(settings) == WorkerLimits()
    assert Door(**settings.limits.model_dump()) == Door()
    budget = Budget()
    assert (settings.memory.tasks_max, settings.memory.bytes_max) == (budget.tasks_max, budget.bytes_max)


def test_every_limit_of_the_parts_is_a_setting() -> None:
    settings = Settings()
    assert set(Limits.__struct_fields__) <= type(settings.dispatcher).model_fields.keys()
    assert set(WorkerLimits.__struct_fields__) == type(settings.worker).model_fields.keys()
    assert set(Door.__struct_fields__) == type(settings.limits).model_fields.keys()


async def test_the_first_opening_sets_up_and_later_ones_find_it(tmp_path: Path) -> None:
    async with opened(settings_of(tmp_path, queues="mail")) as installation:
        topics = await installation.broker.topics()
        assert topics == dict.fromkeys([*installation.topics.fixed, "minutewheel.due.mail"], SHARDS)
        before = await installation.store.progress(63, -1)
    async with opened(settings_of(tmp_path)) as installation:
        assert await installation.store.progress(63, -1) == before
        assert await installation.store.queues() == [Queue("mail")]


async def test_two_processes_may_set_up_at_once(tmp_path: Path) -> None:
    async def openings() -> int:
        async with opened(settings_of(tmp_path)) as installation:
            return (await installation.store.progress(0, -1)).open_minute

    assert len(set(await asyncio.gather(openings(), openings()))) == 1


async def test_who_only_looks_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NoDataFolder, match="minutewheel dev"):
        async with opened(settings_of(tmp_path), create=False):
            pass
    assert not (tmp_path / "data").exists()


async def test_the_data_folder_is_the_owners_alone(tmp_path: Path) -> None:
    async with opened(settings_of(tmp_path)):
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0


async def test_queues_are_checked_where_they_are_to_be_declared(tmp_path: Path) -> None:
    async with opened(settings_of(tmp_path, declare_queues=False)) as installation:
        with pytest.raises(InvalidTask) as refused:
            await installation.check_queue("mail")
        assert refused.value.code == "unknown_queue"
        await installation.declare(["mail"])
        await installation.check_queue("mail")
    async with opened(settings_of(tmp_path)) as installation:
        await installation.check_queue("whatever")


async def test_declaring_again_changes_nothing(tmp_path: Path) -> None:
    async with opened(settings_of(tmp_path)) as installation:
        await installation.client().put_queue(Queue("mail", "none", "for letters"))
        await installation.declare(["mail", "other"])
        assert await installation.store.queues() == [Queue("mail", "none", "for letters"), Queue("other")]


class Later:
    """A clock that is ahead."""

    def __init__(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return wiring.SystemClock().now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return wiring.SystemClock().monotonic_ms()


async def test_what_is_past_its_retention_is_forgotten_but_nothing_that_is_not_applied(tmp_path: Path) -> None:
    async with opened(settings_of(tmp_path, queues="mail")) as installation:
        topics = installation.topics
        for topic in (topics.submit, topics.receipts, topics.due("mail")):
            await installation.broker.produce([Message(topic, b"k", b"v", (), 0)])
        await installation.forget()
        starts = {
            name: (await installation.broker.bounds(name, [0]))[0].start for name in await installation.broker.topics()
        }
        assert set(starts.values()) == {0}
        installation.clock = Later(installation.settings.retention.due_ms + 1_000)  # type: ignore[assignment]
        await installation.forget()
        starts = {name: (await installation.broker.bounds(name, [0]))[0].start for name in starts}
        assert {name for name, start in starts.items() if start == 1} == {topics.receipts, topics.due("mail")}


def test_a_program_without_a_loop_gets_a_client(tmp_path: Path) -> None:
    with connected(settings_of(tmp_path)) as client:
        client.put_queue(Queue("mail"))
        assert client.queues() == [Queue("mail")]
        assert client.get("nobody") is None
