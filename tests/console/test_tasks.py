import time
from typing import Any

import pytest
from minutewheel import InvalidTask, NoAnswer, submission
from minutewheel.console import tasks
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.wiring import Installation


async def test_a_task_is_seen_rescheduled_and_cancelled(desk: Any, served: Installation) -> None:
    await served.client().submit_answered(submission({}, queue="mail", id="far", at="2099-01-01T00:00:00Z"))
    call, screen = desk.call()
    assert await tasks.get(call, "far") == ExitCode.OK
    (seen,) = screen.documents
    assert (seen["key"], seen["state"], seen["due"]) == ("default/far", "scheduled", "2099-01-01T00:00:00.000Z")
    assert isinstance(seen["filing"], str)

    call, screen = desk.call()
    assert await tasks.reschedule(call, "default/far", at="2100-01-01T00:00:00Z") == ExitCode.OK
    assert screen.documents[0]["answer"] == "rescheduled"
    assert screen.documents[0]["due"] == "2100-01-01T00:00:00.000Z"

    call, screen = desk.call(json=False)
    assert await tasks.cancel(call, "far") == ExitCode.OK
    assert screen.text() == "default/far: cancelled (it will not run)\n"

    call, screen = desk.call(json=False)
    assert await tasks.get(call, "far") == ExitCode.OK
    assert "state     cancelled" in screen.text().splitlines()


async def test_the_answers_have_their_exit_codes(desk: Any, served: Installation) -> None:
    await served.client().submit(submission({}, queue="mail", id="now"))
    call, screen = desk.call()
    assert await tasks.get(call, "now", wait=True, within="20s") == ExitCode.OK
    assert screen.documents[0]["state"] == "done"
    assert await tasks.cancel(desk.call()[0], "now") == ExitCode.FAILED
    assert await tasks.cancel(desk.call()[0], "nobody") == ExitCode.NOT_FOUND
    with pytest.raises(Failure) as refused:
        await tasks.get(desk.call()[0], "nobody")
    assert refused.value.code is ExitCode.NOT_FOUND


async def test_nobody_answers_where_nobody_dispatches(desk: Any, installation: Installation) -> None:
    began = time.monotonic()
    with pytest.raises(NoAnswer):
        await tasks.cancel(desk.call()[0], "x", within="50ms")
    with pytest.raises(NoAnswer):
        await tasks.get(desk.call()[0], "x", wait=True, within="50ms")
    assert time.monotonic() - began < 10


async def test_a_name_of_two_encodings_is_refused_before_anything_is_sent(
    desk: Any, installation: Installation
) -> None:
    """Case 62."""
    for verb in (tasks.get, tasks.cancel):
        with pytest.raises(InvalidTask):
            await verb(desk.call()[0], "Zu\u0308rich")
    bounds = await installation.broker.bounds(installation.topics.submit, range(64))
    assert sum(bound.end for bound in bounds) == 0


async def test_a_reschedule_says_when_once(desk: Any) -> None:
    for times in ({}, {"in_": "5s", "at": "2099-01-01T00:00:00Z"}):
        with pytest.raises(Failure) as refused:
            await tasks.reschedule(desk.call()[0], "x", **times)
        assert refused.value.code is ExitCode.USAGE
