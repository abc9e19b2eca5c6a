"""Which parts of the tree must fit together."""

import pytest
from minutewheel.settings import SettingsError, load

pytestmark = pytest.mark.pure

FLEET = {"mode": "real", "cassandra.hosts": "c:9042", "kafka.bootstrap": "k:9092", "zookeeper.hosts": "z:2181"}


@pytest.mark.parametrize(
    ("flags", "about"),
    [
        ({"limits.payload_bytes": 990_000}, "broker.max_message_bytes"),
        ({"retention.tasks_ms": 1_000}, "at least retention.worker_outage_ms"),
        ({"mode": "real"}, "cassandra.hosts, kafka.bootstrap, zookeeper.hosts must be given"),
        ({**FLEET, "kafka.message_timeout_ms": 4_000}, r"message_timeout_ms must be below 0.4 x"),
        ({"queues": "good, no good"}, "a queue is 1 to 64"),
    ],
)
def test_what_cannot_work_together_is_refused(flags: dict[str, object], about: str) -> None:
    with pytest.raises(SettingsError, match=about):
        load(flags)


def test_the_tree_cannot_be_changed() -> None:
    loaded = load().settings
    with pytest.raises(ValueError, match="frozen"):
        loaded.dispatcher.lead_ms = 1  # type: ignore[misc]
