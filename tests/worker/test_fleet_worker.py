"""Workers over the real Kafka and Cassandra."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from minutewheel import App, AsyncContext, Submission
from minutewheel.dispatcher.rejoining import Rejoining
from minutewheel.wiring import opened

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

SESSION_S = 10
"""The least that the broker grants a group's member by itself is less: 6 s."""
TASKS = 50


async def test_a_task_of_minutes_in_a_queue_of_its_own_delays_nobody(fleet: Any) -> None:
    """It outlasts the group's session, the ledger's hold and each poll; the other queue goes on, and it runs once."""
    app = App("two queues")
    started, may_end = asyncio.Event(), asyncio.Event()
    starts: Counter[str] = Counter()

    @app.task(queue="long", max_attempts=3)
    async def long(_payload: int, context: AsyncContext) -> None:
        starts[context.key] += 1
        started.set()
        await may_end.wait()

    @app.task(queue="quick", max_attempts=3)
    async def quick(_payload: int, context: AsyncContext) -> None:
        starts[context.key] += 1

    settings = fleet.settings(
        **{"broker.session_ms": SESSION_S * 1_000, "worker.hold_ms": 8_000, "worker.renew_ms": 2_500}
    )
    async with opened(settings) as installation:
        await installation.declare(["long", "quick"])
        rejoining, worker = Rejoining(installation.dispatcher), installation.worker(app)
        client = installation.client()
        async with asyncio.TaskGroup() as group:
            serving = [group.create_task(rejoining.run()), group.create_task(worker.run())]
            await client.submit(Submission(id="long", queue="long", payload=b"1", delay_ms=0))
            await asyncio.wait_for(started.wait(), 60)
            for part in range(2):
                names = [f"quick-{part}-{n}" for n in range(TASKS)]
                tasks = [Submission(id=name, queue="quick", payload=b"1", delay_ms=0) for name in names]
                assert [answer async for answer in client.submit_many(tasks)]
                for name in names:
                    assert (await client.wait(name)).state == "done"
                await asyncio.sleep(SESSION_S + 2)  # the time itself is what must pass
            assert (await client.get("long")).state == "running"
            may_end.set()
            assert (await client.wait("long")).state == "done"
            worker.stop()
            rejoining.stop()
            await asyncio.wait(serving)
    assert starts == {**{f"default/quick-{part}-{n}": 1 for part in range(2) for n in range(TASKS)}, "default/long": 1}
