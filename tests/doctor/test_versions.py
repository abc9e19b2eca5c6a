import pytest
from minutewheel.doctor.versions import DRIVERS, driver_findings, numbers, server_findings

pytestmark = pytest.mark.pure


def test_numbers_are_compared_as_numbers() -> None:
    assert numbers("3.10.1") > numbers("3.9.5-beta")
    assert numbers("5.0-rc1") == (5, 0)


def test_a_driver_that_is_old_or_not_there() -> None:
    installed = {name: f"{least[0]}.{least[1]}.0" for name, least in DRIVERS.items()}
    assert driver_findings(installed) == []
    found = driver_findings({**installed, "kazoo": "2.9.0"})
    assert [(finding.code, finding.do) for finding in found] == [("driver_version", "pip install 'kazoo>=2.10'")]
    assert len(driver_findings({})) == len(DRIVERS)


def test_a_server_that_is_old() -> None:
    assert server_findings("cassandra", "5.0.9") == []
    assert server_findings("cassandra", "") == [], "it did not say"
    (found,) = server_findings("zookeeper", "3.5.9")
    assert (found.service, found.code) == ("zookeeper", "server_version")
