import json

import msgspec
import pytest
from minutewheel.loadtest.load import run_load
from minutewheel.settings import Settings

pytestmark = pytest.mark.real


async def test_every_row_comes_into_the_wheel(real_settings: Settings) -> None:
    told: dict[str, int] = {}
    printed = json.loads(msgspec.json.encode(await run_load(real_settings, 700, told.__setitem__)))
    assert (printed["rows"], printed["loaded"]) == (700, 700)
    assert set(printed["seconds"]) == {"figure", "budget", "met"}
    assert printed["cpu_us_row"] > 0
    assert told == {"submitted": 700, "filed": 700, "loaded": 700}
