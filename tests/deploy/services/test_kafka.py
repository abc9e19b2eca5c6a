import base64
from pathlib import Path

import pytest
from minutewheel.deploy.services import kafka
from minutewheel.deploy.services.state import Placed

pytestmark = pytest.mark.pure


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    placed = Placed("kafka", "kafka", 1, "127.0.0.1", {"client": 1092, "controller": 1093})
    text = kafka.configuration(placed, tmp_path)
    return {name: value for name, _, value in (line.partition("=") for line in text.splitlines())}


def test_it_listens_where_it_was_placed_and_tells_clients_so(settings: dict[str, str], tmp_path: Path) -> None:
    assert settings["listeners"] == "CLIENT://127.0.0.1:1092,CONTROLLER://127.0.0.1:1093"
    assert settings["advertised.listeners"] == "CLIENT://127.0.0.1:1092"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:1093"
    assert settings["log.dirs"] == str(tmp_path)


def test_no_topic_makes_itself_and_one_broker_is_enough(settings: dict[str, str]) -> None:
    assert settings["auto.create.topics.enable"] == "false"
    copies = {name: value for name, value in settings.items() if name.endswith(("replication.factor", "min.isr"))}
    assert len(copies) == 6
    assert set(copies.values()) == {"1"}


def test_the_cluster_s_id_is_what_kafka_takes() -> None:
    assert len(base64.urlsafe_b64decode(f"{kafka.CLUSTER_ID}==")) == 16


def test_it_is_not_ready_before_its_log_says_so() -> None:
    placed = Placed("kafka", "kafka", 1, "127.0.0.1", {"client": 1, "controller": 2})
    assert not kafka.ready(placed, [placed], "[KafkaRaftServer nodeId=1] starting")
