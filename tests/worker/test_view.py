from datetime import timedelta

from minutewheel import App, submission
from minutewheel.broker.partitioner import shard_of
from minutewheel.testing import virtual


async def test_a_task_is_seen_in_each_of_its_states() -> None:
    app = App("app")

    @app.task(queue="mail")
    async def send(payload: dict[str, int]) -> None: ...

    async with virtual(app) as client:
        inside = client._installation
        assert await client.get("1") is None
        await client.submit(submission({}, queue="mail", id="1", delay=timedelta(seconds=30)))
        view = await client.get("1")
        assert view is not None
        assert (view.state, view.why) == ("scheduled", "due in 30000 ms")
        await client.clock.sleep_ms(30_001)
        await inside.apply()
        view = await client.get("1")
        assert view is not None
        assert (view.state, view.why) == ("scheduled", "due since 1 ms, and not recorded as published")
        await inside.publish()
        await inside.apply()
        view = await client.get("1")
        assert view is not None
        assert view.state == "queued"
        place = ("mail", shard_of("default/1"), view.minute)
        now_ms = client.clock.now_ms()
        await inside.ledger.claim(place, [view.filing], "worker-1", now_ms, now_ms + 10)
        view = await client.get("1")
        assert view is not None
        assert (view.state, view.worker, view.starts) == ("running", "worker-1", 1)
        await client.clock.sleep_ms(10)
        view = await client.get("1")
        assert view is not None
        assert view.state == "queued", "its worker was lost"


async def test_what_was_published_in_a_minute_long_closed_is_queued_until_its_outcome_comes() -> None:
    async with virtual(App("app")) as client:
        await client._installation.broker.create_topics({"minutewheel.due.mail": 64})
        await client.submit(submission({}, queue="mail", id="1"))
        await client.advance(hours=3)
        view = await client.get("1")
        assert view is not None
        assert view.state == "queued"
        progress = await client._installation.store.progress(view.shard, -1)
        assert view.minute < progress.open_minute
