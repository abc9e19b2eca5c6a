from typing import Any

import pytest
from minutewheel.console import queue
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.wiring import opened


async def test_a_declared_queue_is_listed_and_has_its_topic(desk: Any) -> None:
    call, screen = desk.call()
    assert await queue.put(call, "mail", "none", "[bold]letters[/bold]") == ExitCode.OK
    assert await queue.put(call, "mail", "none", "[bold]mail[/bold]") == ExitCode.OK
    call, screen = desk.call()
    await queue.list_(call)
    assert screen.documents == [{"name": "mail", "outcomes": "none", "note": "[bold]mail[/bold]"}]
    call, screen = desk.call(json=False)
    await queue.list_(call)
    assert screen.text() == "queue\toutcomes\tnote\nmail\tnone\t[bold]mail[/bold]\n"
    async with opened(call.settings) as installation:
        assert installation.topics.due("mail") in await installation.broker.topics()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 65, "Z\u00fcrich", "a\n"])
async def test_what_is_no_name_is_refused(desk: Any, name: str) -> None:
    with pytest.raises(Failure) as refused:
        await queue.put(desk.call()[0], name)
    assert refused.value.code is ExitCode.REFUSED
