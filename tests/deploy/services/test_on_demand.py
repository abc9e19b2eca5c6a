from pathlib import Path

import pytest
from minutewheel.deploy.services.launch import server, up
from minutewheel.deploy.services.on_demand import OnDemand


@pytest.mark.pure
def test_nothing_is_started_before_it_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "services"
    OnDemand(folder).end()
    assert not folder.exists()


@pytest.mark.real
def test_what_ran_before_is_used_and_left_running(tmp_path: Path) -> None:
    first, second = OnDemand(tmp_path), OnDemand(tmp_path)
    try:
        assert first.zookeeper == second.zookeeper == first.zookeeper
        assert (first.started, second.started) == (["zookeeper"], [])
        second.end()
        assert server("zookeeper", tmp_path).ready()
        assert up(["zookeeper"], tmp_path).started == ()
    finally:
        first.end()
    assert not server("zookeeper", tmp_path).running
