import pytest
from minutewheel.loadtest.lifecycle import until_done
from minutewheel.loadtest.roles import role
from minutewheel.loadtest.serving import keys_of, submit
from minutewheel.loadtest.stage import LoadTestFailed
from minutewheel.settings import Settings, load
from minutewheel.wiring import opened


async def test_two_roles_run_tasks_and_say_what_they_used(embedded_settings: Settings) -> None:
    ids = list(keys_of("run", 20, range(64)))
    told: dict[str, int] = {}
    async with (
        opened(embedded_settings) as installation,
        role("dispatcher", embedded_settings) as dispatcher,
        role("worker", embedded_settings) as worker,
    ):
        await submit(installation, ids, [installation.clock.now_ms()] * len(ids), told.__setitem__)
        await until_done(installation, ids, told.__setitem__)
        assert (await worker.used()).started == len(ids)
        assert (await dispatcher.used()).started == 0
        assert (await dispatcher.used()).cpu_s > 0
    assert told["done"] == len(ids)


async def test_a_role_that_ends_by_itself_is_noticed() -> None:
    flags = {"mode": "real", **{f"{name}.security": "plaintext" for name in ("cassandra", "kafka", "zookeeper")}}
    places = {"cassandra.hosts": "127.0.0.1:9", "kafka.bootstrap": "127.0.0.1:9", "zookeeper.hosts": "127.0.0.1:9"}
    with pytest.raises(LoadTestFailed, match="ended by itself"):
        async with role("dispatcher", load({**flags, **places}).settings) as dispatcher:
            await dispatcher.used()
