import json

import msgspec
import pytest
from minutewheel.loadtest.intake import run_intake
from minutewheel.settings import Settings

pytestmark = pytest.mark.real


async def test_both_shapes_file_all_their_tasks(real_settings: Settings) -> None:
    told: dict[str, int] = {}
    report = await run_intake(real_settings, 5_000, 2, told.__setitem__)
    printed = json.loads(msgspec.json.encode(report))
    assert printed["shards"] == 2
    for shape, tasks, budget in (("few_minutes", 5_000, 50), ("own_minute", 1_000, 350)):
        assert (printed[shape]["tasks"], printed[shape]["filed"]) == (tasks, tasks)
        assert printed[shape]["tasks_per_s"] > 0
        cpu = printed[shape]["cpu_us_task"]
        assert cpu["budget"] == budget
        assert cpu["met"] is (cpu["figure"] <= budget)
    assert told == {"submitted": 1_000, "filed": 1_000}
