import pytest
from minutewheel.doctor.ensemble import no_access_findings, open_findings, server_answers, session_findings

pytestmark = pytest.mark.pure


def test_a_session_that_is_not_granted_as_asked() -> None:
    assert session_findings(10_000, 10_000) == []
    assert "minSessionTimeout" in session_findings(1_000, 4_000)[0].do
    assert "maxSessionTimeout" in session_findings(100_000, 40_000)[0].do


def test_a_folder_that_is_open_though_we_sign_in() -> None:
    world, ours = ("world", 31), ("digest", 31)
    assert open_findings("/mw", [world], signed_in=False) == []
    assert open_findings("/mw", [ours], signed_in=True) == []
    assert open_findings("/mw", [ours, ("world", 1)], signed_in=True) == [], "everyone may read"
    assert open_findings("/mw", [ours, world], signed_in=True)[0].code == "folder_open"
    assert no_access_findings("/mw")[0].code == "folder_access"


def test_each_server_is_named() -> None:
    answers = {"a:1": "Zookeeper version: 3.9.5", "b:1": None, "c:1": "", "d:1": "… not currently serving requests"}
    found = server_answers(answers)
    assert [(finding.code, finding.what[:3]) for finding in found] == [("server_down", "b:1"), ("server_down", "d:1")]
