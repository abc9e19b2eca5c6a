import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.partitioner import shard_of
from minutewheel.loadtest.serving import dispatching, file, fired, keys_of, published, rows_of, until, waiting
from minutewheel.loadtest.stage import LoadTestFailed
from minutewheel.settings import Settings
from minutewheel.store.task import minute_of
from minutewheel.wiring import opened


@pytest.mark.pure
@given(st.integers(0, 200), st.sets(st.integers(0, 63), min_size=1))
def test_keys_fall_into_the_chosen_shards_and_none_comes_twice(count: int, shards: set[int]) -> None:
    ids = list(keys_of("run", count, shards))
    assert len(set(ids)) == count
    assert {shard_of(f"default/{task_id}") for task_id in ids} <= shards


async def test_what_never_happens_is_not_waited_for_for_ever() -> None:
    with pytest.raises(LoadTestFailed, match="to see it"):
        await until(lambda: False, 0.0, "see it")


async def test_tasks_are_filed_by_one_dispatcher_and_loaded_and_fired_by_the_next(embedded_settings: Settings) -> None:
    told: dict[str, int] = {}
    ids = list(keys_of("run", 50, [3]))
    async with opened(embedded_settings) as installation:
        due_ms = installation.clock.now_ms() + 6_000
    await file(embedded_settings, ids, [due_ms] * 50, 30, told.__setitem__)
    assert told == {"submitted": 50, "filed": 50}
    async with opened(embedded_settings) as installation:
        assert {row.state for row in await rows_of(installation, ids)} == {"scheduled"}
        async with dispatching(installation) as dispatcher:
            minutes = [minute_of(due_ms)]
            await until(lambda: waiting(dispatcher, minutes) == 50 or fired(dispatcher) == 50, 30, "load")
            await until(lambda: fired(dispatcher) == 50, 30, "fire")
        assert sorted(await published(installation)) == sorted(ids)
