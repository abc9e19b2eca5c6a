import json

import msgspec
import pytest
from minutewheel.loadtest.lifecycle import run_lifecycle
from minutewheel.settings import Settings

pytestmark = pytest.mark.real


async def test_every_task_comes_to_its_end(real_settings: Settings) -> None:
    told: dict[str, int] = {}
    printed = json.loads(msgspec.json.encode(await run_lifecycle(real_settings, 100, told.__setitem__)))
    assert printed["tasks"] == printed["done"] == printed["started"] == printed["published"] == 100
    assert printed["repeated"] >= 0
    for role in ("client", "dispatcher", "worker"):
        assert printed[f"{role}_cpu_us_task"] > 0
    assert told["accepted"] == told["done"] == 100
