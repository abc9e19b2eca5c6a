"""Settings of a fleet on the real services, and of a data folder of the test's own."""

from pathlib import Path
from typing import Any

import pytest
from minutewheel.settings import Settings, load


@pytest.fixture
def real_settings(services: Any) -> Settings:
    flags: dict[str, object] = {
        "mode": "real",
        "cassandra.hosts": services.cassandra,
        "kafka.bootstrap": services.kafka,
        "zookeeper.hosts": services.zookeeper,
        "cassandra.replication": 1,
        "kafka.replication": 1,
        **{f"{name}.security": "plaintext" for name in ("cassandra", "kafka", "zookeeper")},
    }
    return load(flags).settings


@pytest.fixture
def embedded_settings(tmp_path: Path) -> Settings:
    return load({"data": tmp_path / "data", "durability": "kill", "queues": "load"}).settings
