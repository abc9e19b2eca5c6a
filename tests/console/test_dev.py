import asyncio
import io
import json
from typing import Any

import pytest
from minutewheel import App
from minutewheel.console.dev import beside, declare_queues_of, status_line
from minutewheel.console.exits import Failure
from minutewheel.console.output import Output
from minutewheel.console.serving import serving
from minutewheel.wiring import Installation, opened


class Banner(io.StringIO):
    """Says when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def flush(self) -> None:
        self.written.set()


def an_app(queue: str) -> App:
    app = App("dev")

    @app.task(queue=queue)
    async def work(_payload: dict[str, Any]) -> None: ...

    return app


async def test_it_says_when_it_serves(installation: Installation) -> None:
    out = Banner()
    dispatcher, worker = installation.dispatcher(), installation.worker(an_app("mail"))
    await declare_queues_of(installation, [an_app("mail")])
    async with beside(installation, dispatcher, [worker], Output(json=True, out=out)), serving([worker, dispatcher]):
        async with asyncio.timeout(30):
            await out.written.wait()
        assert sum(shard.claimed for shard in dispatcher.shards.values()) == 64
        line = status_line(dispatcher, [worker], 1_234, 5.0)
    document = json.loads(out.getvalue())
    assert (document["serving"], document["data"]) == (True, installation.place)
    assert line.startswith("64 shards · 0 loaded · 1,234 fired · 5/s · 0 done")


async def test_the_queues_of_workers_are_declared_or_missing(desk: Any) -> None:
    async with opened(desk.call()[0].settings) as installation:
        await declare_queues_of(installation, [an_app("mail")])
        assert [queue.name for queue in await installation.store.queues()] == ["mail"]
    desk.flags = {"declare_queues": False}
    async with opened(desk.call()[0].settings) as installation:
        await declare_queues_of(installation, [an_app("mail")])
        with pytest.raises(Failure, match="nobody has declared other"):
            await declare_queues_of(installation, [an_app("other")])
