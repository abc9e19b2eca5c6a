import json

import msgspec
import pytest
from minutewheel.loadtest.fire import PACE_PER_S, run_fire
from minutewheel.settings import Settings

pytestmark = pytest.mark.real


async def test_all_tasks_are_fired_flat_out_and_at_the_pace(real_settings: Settings) -> None:
    told: dict[str, int] = {}
    printed = json.loads(msgspec.json.encode(await run_fire(real_settings, 500, 1, 2, told.__setitem__)))
    assert printed["shards"] == 2
    for name, tasks in (("flat", 500), ("paced", PACE_PER_S)):
        assert (printed[name]["tasks"], printed[name]["published"]) == (tasks, tasks)
        assert printed[name]["repeated"] >= 0
        assert printed[name]["cpu_us_task"] > 0
        assert printed[name]["store_writes_per_1000"]["figure"] > 0
    assert set(printed["flat"]["tasks_per_s"]) == {"figure", "budget", "met"}
    assert {"p50_ms", "p99_ms", "max_ms"} == printed["paced"]["lateness"].keys()
    assert told == dict.fromkeys(("submitted", "filed", "loaded", "fired"), PACE_PER_S)
