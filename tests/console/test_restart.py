import asyncio
from typing import Any

import pytest
from minutewheel.console.exits import Failure
from minutewheel.console.restart import accept_loss
from minutewheel.console.serving import serving
from minutewheel.store.position import unpack_position
from minutewheel.store.task import SHARDS
from minutewheel.wiring import Installation


async def test_shards_go_on_where_a_log_that_was_made_anew_begins(installation: Installation) -> None:
    assert await accept_loss(installation) == 0, "nothing is lost: nothing is changed"
    before = await installation.store.progress(5, -1)
    broker: Any = installation.broker
    await broker.delete_topic(installation.topics.submit)
    await broker.create_topics({installation.topics.submit: SHARDS})
    assert await accept_loss(installation) == SHARDS
    after = await installation.store.progress(5, -1)
    assert unpack_position(after.offsets[0]).incarnation > unpack_position(before.offsets[0]).incarnation
    assert after.offsets[1:] == before.offsets[1:]
    assert after.offsets[0] > before.offsets[0], "positions only grow"
    assert after.open_minute == before.open_minute
    assert await accept_loss(installation) == 0


async def test_owners_would_go_on_with_what_they_remember(installation: Installation) -> None:
    async with serving([installation.dispatcher()]):
        while not await installation.coordinator.members():  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(0.01)
        with pytest.raises(Failure, match="stop the dispatchers first"):
            await accept_loss(installation)
