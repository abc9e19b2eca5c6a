from typing import Any

import pytest
from minutewheel.console.doctor import doctor, show
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.doctor import Finding

NOWHERE = {
    "mode": "real",
    "cassandra.hosts": "127.0.0.1:1",
    "kafka.bootstrap": "127.0.0.1:1",
    "zookeeper.hosts": "127.0.0.1:1",
    "dispatcher.session_ms": 1_000,
    "kafka.message_timeout_ms": 300,
    **{f"{service}.security": "plaintext" for service in ("cassandra", "kafka", "zookeeper")},
}


async def test_a_data_folder_has_no_services(desk: Any) -> None:
    with pytest.raises(Failure) as refused:
        await doctor(desk.call()[0])
    assert refused.value.code == ExitCode.USAGE


async def test_what_does_not_answer_is_said_with_what_to_do(desk: Any) -> None:
    desk.flags = NOWHERE
    call, screen = desk.call()
    assert await doctor(call) == ExitCode.FAILED
    found = screen.documents
    assert [one["service"] for one in found if one["code"] == "no_answer"] == ["cassandra", "kafka", "zookeeper"]


def test_people_read_what_is_wrong_and_below_it_what_to_do(desk: Any) -> None:
    call, screen = desk.call(json=False)
    assert show([Finding("kafka", "clock", "the clock is wrong", "mend it")], call.output) == ExitCode.FAILED
    assert screen.text() == "kafka clock: the clock is wrong\n    mend it\n"
    call, screen = desk.call(json=False)
    assert show([], call.output) == ExitCode.OK
    assert screen.text() == ""


async def test_certificates_that_are_not_there(desk: Any) -> None:
    secured = {f"{service}.security": "tls" for service in ("cassandra", "kafka", "zookeeper")}
    files = {f"{service}.ca_file": "not-there.pem" for service in ("cassandra", "kafka", "zookeeper")}
    desk.flags = {**NOWHERE, **secured, **files}
    call, screen = desk.call()
    assert await doctor(call) == ExitCode.FAILED
    assert [one["code"] for one in screen.documents] == ["no_answer"] * 3
