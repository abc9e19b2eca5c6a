from datetime import UTC, datetime, timedelta

import pytest
from minutewheel import App, AsyncContext, Backoff, Context, NoAnswer, Reject, Retry, Snooze
from minutewheel.testing import START, virtual
from msgspec import Struct


class Mail(Struct):
    to: str


async def test_nothing_runs_before_its_time_and_all_of_it_then() -> None:
    app = App("app")
    sent: list[str] = []

    @app.task(queue="mail")
    async def remind(mail: Mail) -> None:
        sent.append(mail.to)

    async with virtual(app) as client:
        await remind.schedule(client, Mail("eve"), delay=timedelta(hours=3), id="1")
        await remind.schedule(client, Mail("adam"), at=START + timedelta(hours=2), id="2")
        await client.advance(hours=3, ms=-1)
        assert sent == ["adam"]
        await client.advance(ms=1)
        assert sent == ["adam", "eve"]
        assert [run.key for run in client.runs] == ["default/2", "default/1"]
        await client.advance(ms=1)
        view = await client.get("1")
        assert view is not None
        assert view.state == "done"
        assert client.now == START + timedelta(hours=3, milliseconds=1)


async def test_failures_are_tried_again_in_virtual_time_until_their_number_is_up() -> None:
    app = App("app")

    @app.task(queue="mail", max_attempts=3, retry=Backoff(base_ms=60_000))
    def fail(mail: Mail, ctx: Context) -> None:
        raise ValueError(f"start {ctx.starts}")

    async with virtual(app) as client:
        await fail.schedule(client, Mail("eve"), id="1")
        view = await client.wait("1")
        assert (view.state, view.attempt) == ("dead", 3)
        assert [run.reason for run in client.runs] == [f"ValueError: start {n}" for n in (1, 2, 3)]
        first, second, third = (run.at_ms for run in client.runs)
        assert 48_000 <= second - first <= 72_000
        assert 96_000 <= third - second <= 144_000
        assert (await client.redrive("1")).answer == "redriven"
        await client.advance()
        assert client.runs[3].reason == "ValueError: start 1", "a fresh count"


async def test_handlers_say_when_to_come_back() -> None:
    app = App("app")
    starts: list[tuple[int, int]] = []

    @app.task(queue="mail", max_attempts=2)
    async def moody(mail: Mail, ctx: AsyncContext) -> None:
        starts.append((ctx.attempt, ctx.starts))
        assert await ctx.once("first") == (len(starts) == 1)
        if len(starts) < 4:
            raise Snooze(after_ms=1_000)
        if len(starts) == 4:
            raise Retry(after_ms=5_000)
        raise Reject("enough")

    async with virtual(app) as client:
        await moody.schedule(client, Mail("eve"), id="1")
        view = await client.wait("1")
        assert view.state == "dead"
        assert "enough" in view.note
        assert starts == [(1, 1)] * 4 + [(2, 2)], "a snooze costs no attempt (case 47)"
        assert [run.at_ms - client.runs[0].at_ms for run in client.runs] == [0, 1_000, 2_000, 3_000, 8_000]


async def test_a_cancelled_task_never_runs_and_a_rescheduled_one_runs_once() -> None:
    app = App("app")
    sent: list[str] = []

    @app.task(queue="mail")
    async def remind(mail: Mail) -> None:
        sent.append(mail.to)

    async with virtual(app) as client:
        for name in ("1", "2"):
            await remind.schedule(client, Mail(name), delay=timedelta(minutes=5), id=name)
        assert (await client.cancel("1")).answer == "cancelled"
        assert (await client.reschedule("2", delay=timedelta(minutes=10))).answer == "rescheduled"
        await client.advance(minutes=9)
        assert sent == []
        await client.advance(minutes=1)
        assert sent == ["2"]
        assert (await client.cancel("2")).answer == "too_late"
        assert (await client.cancel("3")).answer == "unknown"
        await client.advance(hours=2)
        assert sent == ["2"]


async def test_a_far_task_is_delivered_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Case 48: due in 6 h, whatever any broker's timeouts are."""
    app = App("app")

    @app.task(queue="mail")
    async def remind(mail: Mail) -> None: ...

    async with virtual(app) as client:
        await remind.schedule(client, Mail("eve"), delay=timedelta(hours=6), id="1")
        await client.advance(hours=12)
        assert len(client.runs) == 1
        assert client.runs[0].at_ms == int((START + timedelta(hours=6)).timestamp() * 1_000)


async def test_waiting_for_what_never_comes_ends() -> None:
    async with virtual(App("app"), start=datetime(2031, 1, 1, tzinfo=UTC)) as client:
        with pytest.raises(NoAnswer, match="default/nothing"):
            await client.wait("nothing", within_ms=1_000)
