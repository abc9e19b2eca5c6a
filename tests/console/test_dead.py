from collections.abc import Sequence
from typing import Any

import pytest
from minutewheel import submission
from minutewheel.console import dead, listing
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.wiring import Installation


async def die(installation: Installation, names: Sequence[str], reason: str = "no") -> None:
    client = installation.client()
    for name in names:
        await client.submit(submission({"reject": reason}, queue="mail", id=name))
    for name in names:
        assert (await client.wait(name, within_ms=20_000)).state == "dead"


async def test_dead_tasks_are_listed_redriven_and_dropped(desk: Any, served: Installation) -> None:
    await die(served, ["one", "two", "three"], "[red]no\x1b[0m")
    call, screen = desk.call()
    assert await dead.list_(call) == ExitCode.OK
    assert {letter["key"] for letter in screen.documents} == {"default/one", "default/two", "default/three"}
    assert {letter["reason"] for letter in screen.documents} == {"[red]no\x1b[0m"}

    call, screen = desk.call(json=False)
    await listing.list_(call, dead=True, limit=2)
    assert len(screen.text().splitlines()) == 3
    assert "[red]no\\x1b[0m" in screen.text()

    call, screen = desk.call()
    assert await dead.redrive(call, "one", at="2099-01-01T00:00:00Z") == ExitCode.OK
    assert screen.documents[0]["answer"] == "redriven"
    assert await dead.redrive(desk.call()[0], "one") == ExitCode.FAILED

    call, screen = desk.call()
    assert await dead.drop(call, all_=True, queue="other") == ExitCode.OK
    assert screen.documents == []
    assert await dead.drop(call, all_=True) == ExitCode.OK
    assert [answer["answer"] for answer in screen.documents] == ["discarded", "discarded"]
    call, screen = desk.call()
    await dead.list_(call)
    assert screen.documents == []
    assert await dead.drop(desk.call()[0], "nobody") == ExitCode.NOT_FOUND


@pytest.mark.parametrize("flags", [{}, {"key": "x", "all_": True}, {"key": "x", "queue": "mail"}])
async def test_one_or_all(desk: Any, flags: dict[str, object]) -> None:
    for verb in (dead.redrive, dead.drop):
        with pytest.raises(Failure) as refused:
            await verb(desk.call()[0], **flags)  # type: ignore[operator]
        assert refused.value.code is ExitCode.USAGE
