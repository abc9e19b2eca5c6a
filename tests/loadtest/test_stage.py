import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from minutewheel import fleet
from minutewheel.loadtest.stage import QUEUE, LoadTestFailed, local, own_fleet, staged, with_lead
from minutewheel.settings import Settings
from minutewheel.wiring import opened


@pytest.mark.pure
def test_each_fleet_has_names_of_its_own() -> None:
    first, second = own_fleet(Settings()), own_fleet(Settings())
    for one, other in (
        (first.topics.prefix, second.topics.prefix),
        (first.cassandra.keyspace, second.cassandra.keyspace),
        (first.zookeeper.chroot, second.zookeeper.chroot),
    ):
        assert one != other
        assert re.fullmatch(r"/?minutewheel[-_]load[-_][0-9a-f]{8}", one)
    assert first.queues == (QUEUE,)


@pytest.mark.pure
def test_the_longest_names_stay_within_what_the_settings_allow() -> None:
    settings = Settings(topics={"prefix": "p" * 100}, cassandra={"keyspace": "k" * 48})
    own = own_fleet(settings)
    again = Settings(topics=own.topics.model_dump(), cassandra={"keyspace": own.cassandra.keyspace})
    assert again.topics.prefix == own.topics.prefix


@pytest.mark.pure
def test_the_lead_is_all_that_changes() -> None:
    settings = Settings()
    changed = with_lead(settings, 7)
    assert changed.dispatcher.lead_ms == 7
    assert with_lead(changed, settings.dispatcher.lead_ms) == settings


def test_a_folder_without_services_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(LoadTestFailed, match="no services"):
        local(Settings(), tmp_path)


@pytest.mark.real
async def test_nothing_is_left_of_a_fleet(real_settings: Settings) -> None:
    async with staged(real_settings) as own:
        async with opened(own) as installation:
            assert installation.topics.due(QUEUE) in await installation.broker.topics()
            topics = await installation.broker.topics()
        assert any(name.startswith(f"{own.topics.prefix}.") for name in topics)
    async with AsyncExitStack() as stack:
        broker = await fleet.open_broker(own, stack)
        assert [name for name in await broker.topics() if name.startswith(own.topics.prefix)] == []
        connection = await fleet.open_cassandra(own, stack)
        asked = await connection.prepare("SELECT keyspace_name FROM system_schema.keyspaces")
        assert (own.cassandra.keyspace,) not in await connection.read(asked.bind(()))
