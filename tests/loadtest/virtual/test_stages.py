"""Is all time that goes by shared out among the stages?"""

import time

import pytest
from minutewheel.loadtest.virtual.stages import Stages

pytestmark = pytest.mark.pure


def test_the_stages_add_up_to_the_time_since_the_beginning() -> None:
    stages = Stages()
    began = time.perf_counter()
    stages.begin()
    for stage in ("a", "b", "a"):
        sum(range(50_000))
        stages.end(stage)
    spent = time.perf_counter() - began
    assert stages.seconds.keys() == {"a", "b"}
    assert 0 < sum(stages.seconds.values()) <= spent
    before = sum(stages.seconds.values())
    stages.begin()
    assert sum(stages.seconds.values()) == before, "what goes on between two turns belongs to no stage"
