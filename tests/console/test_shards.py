import asyncio
from typing import Any

from minutewheel import submission
from minutewheel.broker.partitioner import shard_of
from minutewheel.console.exits import ExitCode
from minutewheel.console.shards import shards, standings_of
from minutewheel.store.task import SHARDS
from minutewheel.wiring import Installation

SHARD = shard_of("default/order")


async def test_what_nobody_has_applied_is_intake_lag(installation: Installation) -> None:
    await installation.declare(["mail"])
    await installation.client().submit(submission(None, queue="mail", id="order"))
    standings = await standings_of(installation)
    assert [standing.shard for standing in standings] == list(range(SHARDS))
    assert {standing.owner for standing in standings} == {""}
    assert [standing.shard for standing in standings if standing.intake_lag] == [SHARD]


async def test_what_is_served_has_owners_and_what_is_due_waits(desk: Any, served_without_worker: Installation) -> None:
    client = served_without_worker.client()
    await served_without_worker.declare(["mail"])
    await client.submit(submission(None, queue="mail", id="order"))
    while (view := await client.get("order")) is None or view.state != "queued":  # noqa: ASYNC110 - as any client
        await asyncio.sleep(0.05)
    standing = (await standings_of(served_without_worker))[SHARD]
    assert standing.owner
    assert standing.fence > 0
    assert standing.behind_minutes <= 1
    call, screen = desk.call(json=False)
    assert await shards(call) == ExitCode.OK
    assert len(screen.text().splitlines()) == SHARDS + 1
    assert "nobody" not in screen.text()
