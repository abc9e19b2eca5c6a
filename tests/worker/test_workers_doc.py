"""The examples of docs/workers.md, run."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from minutewheel import Client
from minutewheel.testing import virtual
from minutewheel.worker import Loop

DOC = Path(__file__).parents[2] / "docs" / "workers.md"


@pytest.fixture
def names() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "workers_doc"}
    for block in re.findall(r"^```python\n(.*?)^```", DOC.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, str(DOC), "exec"), names)
    return names


async def test_the_handlers_and_the_client_with_a_loop_do_what_is_said(names: dict[str, Any]) -> None:
    async with virtual(names["app"]) as client:
        await names["with_a_loop"](client)
        await client.advance(hours=3)
        runs = {run.key: run.kind for run in client.runs}
        assert runs["default/invoice-7"] == "done"
        assert sorted(runs.values()) == ["done"] * 1_001
        await names["send_invoice"].schedule(client, names["Invoice"](9, ""), id="9")
        view = await client.wait("9")
        assert (view.state, view.why) == ("dead", "attempt 1: the customer has no address")


async def test_the_client_without_a_loop(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    loop, stack = Loop(), AsyncExitStack()
    inner = await asyncio.to_thread(loop.call, stack.enter_async_context(virtual(names["app"])))
    await asyncio.to_thread(names["without"], Client(inner, loop))
    await asyncio.to_thread(loop.call, stack.aclose())
    loop.close()
    assert capsys.readouterr().out == "cancelled\n"


async def test_the_test(names: dict[str, Any]) -> None:
    await names["test_an_invoice_is_sent_in_three_hours"]()
