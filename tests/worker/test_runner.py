import asyncio
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from minutewheel.broker.outcome import Reported, decode_outcome
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Message, Topics
from minutewheel.store.record import Options
from minutewheel.store.sqlite_connection import at_once
from minutewheel.worker import AsyncContext, Context, Reject, Retry, Snooze
from msgspec import Struct

KEY = "acme/a"


class Mail(Struct):
    to: str = "nobody"


async def test_an_async_handler_gets_its_payload_and_the_outcome_is_done(stand: Any) -> None:
    seen: list[Mail] = []

    @stand.app.task(queue="mail")
    async def send(mail: Mail) -> None:
        seen.append(mail)

    await stand.publish(stand.due(KEY, payload=b'{"to":"eve"}'))
    async with stand.running(stand.worker()) as worker:
        (outcome,) = await stand.outcomes(KEY)
    assert seen == [Mail("eve")]
    assert (outcome.kind, outcome.key, outcome.starts) == ("done", KEY, 1)
    assert worker.statistics().done == 1
    assert await stand.committed() == 1


async def test_a_plain_handler_runs_beside_the_loop(stand: Any) -> None:
    @stand.app.task(queue="mail")
    def send(mail: Mail, ctx: Context) -> None:
        assert ctx.once("letter")
        assert not ctx.once("letter")
        assert ctx.once("another")
        ctx.heartbeat()

    await stand.publish(stand.due(KEY))
    async with stand.running(stand.worker()):
        (outcome,) = await stand.outcomes(KEY)
    assert outcome.kind == "done", outcome.reason


@pytest.mark.parametrize(
    ("raised", "kind", "retryable", "delay_ms", "starts"),
    [
        (Retry(after_ms=7), "failed", True, 7, 3),
        (Snooze(after_ms=9), "snoozed", True, 9, 2),
        (Reject("never"), "failed", False, None, 3),
        (ValueError("broken"), "failed", True, None, 3),
        (SystemExit(1), "failed", True, None, 3),
        (asyncio.CancelledError(), "failed", True, None, 3),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
async def test_what_a_handler_raises_says_how_it_ended(
    stand: Any, raised: BaseException, kind: str, retryable: bool, delay_ms: int | None, starts: int, plain: bool
) -> None:
    """Case 47: all starts count, those of earlier attempts too; only a snooze costs none."""

    @stand.app.task("waiting", queue="mail")
    async def waiting(mail: Mail) -> None:
        raise raised

    @stand.app.task("plain", queue="mail")
    def plainly(mail: Mail) -> None:
        raise raised

    name = b"plain" if plain else b"waiting"
    await stand.publish(stand.due(KEY, options=Options(starts=2), headers=(("task", name),), payload=b'{"to":"x"}'))
    async with stand.running(stand.worker()):
        (outcome,) = await stand.outcomes(KEY)
    assert (outcome.kind, outcome.retryable, outcome.delay_ms, outcome.starts) == (kind, retryable, delay_ms, starts)
    assert outcome.payload == b'{"to":"x"}', "it carries the delivered record back"
    assert ("task", name) in outcome.headers
    assert await stand.committed() == 1


async def test_a_task_that_was_started_as_often_as_it_may_is_not_started_again(stand: Any) -> None:
    """Case 44, by the ledger's count: two workers died over it."""
    message = stand.due(KEY, options=Options(max_attempts=3, starts=1))
    filing = int(dict(message.headers)["mw_filing"])
    place = ("mail", int(dict(message.headers)["mw_shard"]), int(dict(message.headers)["mw_minute"]))
    for worker in ("one", "two"):
        await stand.ledger.claim(place, [filing], worker, stand.clock.now_ms(), stand.clock.now_ms() - 1)

    @stand.app.task(queue="mail")
    async def deadly(mail: Mail) -> None:
        raise AssertionError("it must not be started")

    await stand.publish(message)
    async with stand.running(stand.worker()) as worker:
        (outcome,) = await stand.outcomes(KEY)
    assert (outcome.kind, outcome.reason, outcome.retryable, outcome.starts) == ("failed", "worker lost", False, 3)
    assert worker.statistics().started == 0


async def test_one_attempt_is_one_start(stand: Any) -> None:
    """Case 47: max_attempts 1 starts once, and the outcome says that this was all."""

    @stand.app.task(queue="mail")
    async def fail(mail: Mail) -> None:
        raise ValueError

    await stand.publish(stand.due(KEY, options=Options(max_attempts=1)))
    async with stand.running(stand.worker()):
        (outcome,) = await stand.outcomes(KEY)
    assert outcome.starts == outcome.task.max_attempts == 1


async def test_what_is_past_its_start_deadline_is_not_started(stand: Any) -> None:
    @stand.app.task(queue="mail")
    async def late(mail: Mail) -> None:
        raise AssertionError("it must not be started")

    await stand.publish(stand.due(KEY, expires_ms=1, options=Options(starts=1)))
    async with stand.running(stand.worker()) as worker:
        (outcome,) = await stand.outcomes(KEY)
    assert (outcome.kind, outcome.starts) == ("expired", 1)
    assert worker.statistics().started == 0


@pytest.mark.parametrize(
    ("payload", "headers", "reason"),
    [
        (b'{"to":5}', (), "payload: ValidationError"),
        (b"\xff", (), "payload: "),
        (b"[" * 100_000, (), "payload: "),
        (b'{"to":"\xff"}', (), "payload: "),
        (b"{}", (("content-type", b"text/plain"),), "payload: ValueError: content type"),
        (b"{}", (("task", b"unknown"),), "queue 'mail' needs a handler 'unknown'; handlers here: send"),
        (b"{}", (("task", b"\xff"),), "queue 'mail' needs a handler"),
    ],
)
async def test_what_no_handler_can_take_fails_for_good_with_the_reason(
    stand: Any, payload: bytes, headers: Any, reason: str
) -> None:
    @stand.app.task(queue="mail")
    async def send(mail: Mail) -> None:
        raise AssertionError("it must not be started")

    await stand.publish(stand.due(KEY, payload=payload, headers=headers))
    async with stand.running(stand.worker()):
        (outcome,) = await stand.outcomes(KEY)
    assert (outcome.kind, outcome.retryable) == ("failed", False)
    assert outcome.reason.startswith(reason)


async def test_an_undecodable_record_is_refused_once_and_holds_nothing_up(stand: Any) -> None:
    """Case 43: both good tasks run, each bad record is in `rejected` once, and the lag returns to 0."""
    runs = Counter[str]()

    @stand.app.task(queue="mail")
    async def send(mail: Mail, ctx: AsyncContext) -> None:
        runs[ctx.key] += 1

    bad = [
        Message("mw.due.mail", b"acme/a", b"", (), 1),
        Message("mw.due.mail", b"acme/a", None, (), 1),
        Message("mw.due.mail", b"\xff", b"\xff\xfe", (("mw_id", b"\xff"), ("mw_shard", b"1e9")), 1),
        Message("mw.due.mail", b"acme/a", b"[" * 500_000, (), 1),
    ]
    good = [stand.due(KEY), stand.due("acme/b")]
    in_one = [Message(m.topic, m.key, m.value, m.headers, 1) for m in good]
    await stand.publish(in_one[0], *bad, in_one[1])
    async with stand.running(stand.worker()) as worker:
        await stand.outcomes(KEY)
        await stand.outcomes("acme/b")
        await stand.until(lambda: not worker.statistics().uncommitted)
    rejected = (await stand.broker.fetch("mw.rejected", 1, 0, 100, 0)).records
    assert sorted(len(record.value or b"") for record in rejected) == [0, 0, 2, 131_072]
    assert {dict(record.headers)["mw_code"] for record in rejected} == {b"not_decodable"}
    assert runs == {KEY: 1, "acme/b": 1}
    assert await stand.committed() == 6


async def test_two_workers_given_the_same_record_at_the_same_instant_run_it_once(stand: Any) -> None:
    """Case 49. Two groups, so that both get it; the other's record is settled when the first has finished."""
    runs, release = Counter[str](), asyncio.Event()

    @stand.app.task(queue="mail")
    async def send(mail: Mail, ctx: AsyncContext) -> None:
        runs[ctx.key] += 1
        await release.wait()

    await stand.publish(stand.due(KEY))
    async with stand.running(stand.worker(group="one")) as one, stand.running(stand.worker(group="two")) as two:
        await stand.until(lambda: one.statistics().parked + two.statistics().parked)
        release.set()
        await stand.outcomes(KEY)
        stand.clock.jump(30_001)
        outcomes = await stand.outcomes(KEY, 2)
    assert runs == {KEY: 1}
    assert [outcome.kind for outcome in outcomes] == ["done", "done"]
    assert await stand.committed("one") == await stand.committed("two") == 1


async def test_a_retry_is_not_taken_for_a_repeat_and_a_repeat_is_not_run(stand: Any) -> None:
    """Case 49: each filing is a key of its own, and a finished one stays finished."""
    attempts: list[int] = []

    @stand.app.task(queue="mail")
    async def send(mail: Mail, ctx: AsyncContext) -> None:
        attempts.append(ctx.attempt)

    first, second = stand.due(KEY, filing=1 << 15), stand.due(KEY, filing=1 << 16, attempt=2)
    async with stand.running(stand.worker()) as worker:
        for message in (first, second, first, second):
            await stand.publish(message)
        await stand.outcomes(KEY, 2)
        await stand.until(lambda: worker.statistics().uncommitted == worker.statistics().in_hand == 0)
        stand.clock.jump(7 * 86_400_000)
        await stand.publish(first)
        await stand.until(lambda: worker.statistics().finished_before)
    assert attempts == [1, 2]


async def test_a_held_record_blocks_no_other_partition_and_is_looked_at_without_haste(stand: Any) -> None:
    message = stand.due(KEY)
    headers = dict(message.headers)
    place = ("mail", int(headers["mw_shard"]), int(headers["mw_minute"]))
    now_ms = stand.clock.now_ms()
    await stand.ledger.claim(place, [int(headers["mw_filing"])], "another", now_ms, now_ms + 30_000)
    runs: list[str] = []

    @stand.app.task(queue="mail")
    async def send(mail: Mail, ctx: AsyncContext) -> None:
        runs.append(ctx.key)

    await stand.publish(Message(message.topic, message.key, message.value, message.headers, 0))
    others = [stand.due(f"acme/{n}") for n in range(20)]
    await stand.publish(*(Message(m.topic, m.key, m.value, m.headers, 1) for m in others))
    async with stand.running(stand.worker(concurrency=1)) as worker:
        await stand.until(lambda: len(runs) == 20 and worker.statistics().uncommitted == 1)
        assert KEY not in runs
        assert worker.statistics().parked == 1
        stand.clock.jump(30_001)
        (outcome,) = await stand.outcomes(KEY)
    assert (outcome.kind, outcome.starts) == ("done", 2)


async def test_a_handler_past_its_timeout_fails_and_a_heartbeat_gives_it_more(stand: Any) -> None:
    @stand.app.task("stuck", queue="mail", timeout_ms=30)
    async def stuck(mail: Mail) -> None:
        await asyncio.Event().wait()

    @stand.app.task("stuck plainly", queue="mail", timeout_ms=30)
    def stuck_plainly(mail: Mail, ctx: Context) -> None:
        released.wait()

    @stand.app.task("steady", queue="mail", timeout_ms=1_000)
    async def steady(mail: Mail, ctx: AsyncContext) -> None:
        assert ctx.deadline_ms is not None
        until_ms = ctx.deadline_ms + 100
        while stand.clock.now_ms() < until_ms:
            ctx.heartbeat()
            await asyncio.sleep(0.01)

    released = threading.Event()
    keys = {"stuck": "acme/1", "stuck plainly": "acme/2", "steady": "acme/3"}
    await stand.publish(*(stand.due(key, headers=(("task", name.encode()),)) for name, key in keys.items()))
    async with stand.running(stand.worker()):
        for name, key in keys.items():
            (outcome,) = await stand.outcomes(key)
            if name == "steady":
                assert outcome.kind == "done", outcome.reason
            else:
                assert (outcome.kind, outcome.retryable) == ("failed", True)
                assert outcome.reason == "timeout: not done within 30 ms"
        released.set()


async def test_a_hold_that_is_lost_ends_the_run_without_an_outcome_of_its_own(stand: Any) -> None:
    """Case 42: the worker was frozen past its hold, and another has taken over."""
    entered, cancelled = asyncio.Event(), asyncio.Event()
    starts = 0

    @stand.app.task(queue="mail")
    async def send(mail: Mail) -> None:
        nonlocal starts
        starts += 1
        if starts > 1:
            return
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    message = stand.due(KEY)
    headers = dict(message.headers)
    place = ("mail", int(headers["mw_shard"]), int(headers["mw_minute"]))
    await stand.publish(message)
    async with stand.running(stand.worker()):
        await entered.wait()
        far_ms = stand.clock.now_ms() + 30_001
        await stand.ledger.claim(place, [int(headers["mw_filing"])], "another", far_ms, far_ms + 30_000)
        stand.clock.jump(10_001)
        await cancelled.wait()
        assert (await stand.broker.bounds("mw.outcomes", [place[1]]))[0].end == 0
        await stand.ledger.finish(place, [int(headers["mw_filing"])])
        stand.clock.jump(60_001)
        (outcome,) = await stand.outcomes(KEY)
    assert outcome.kind == "done", "the other's finish is told, for it may have died before it told it"
    assert starts == 1


class Mutes:
    """A broker of which a worker hears nothing while `heard` is not set: its group takes it for gone."""

    def __init__(self, inner: Any, heard: asyncio.Event | None = None) -> None:
        self.heard = heard or asyncio.Event()
        self._inner = inner
        if heard is None:
            self.heard.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def join(self, *arguments: Any) -> "Mutes":
        return Mutes(await self._inner.join(*arguments), self.heard)

    async def poll(self, limit: int, wait_ms: int) -> Any:
        await self.heard.wait()
        return await self._inner.poll(limit, wait_ms)


async def test_what_waits_in_a_partition_that_was_lost_is_left_to_its_new_member(stand: Any) -> None:
    """Case 42: the record is held by a third; the one that lost the partition cares for it no more."""
    message = stand.due(KEY)
    headers = dict(message.headers)
    place = ("mail", int(headers["mw_shard"]), int(headers["mw_minute"]))
    far_ms = stand.clock.now_ms() + 86_400_000
    await stand.ledger.claim(place, [int(headers["mw_filing"])], "another", far_ms, far_ms)

    @stand.app.task(queue="mail")
    async def never(mail: Mail) -> None:
        raise AssertionError("it must not be started")

    await stand.publish(message)
    mutes = Mutes(stand.broker)
    async with stand.running(stand.worker(broker=mutes)) as first:
        await stand.until(lambda: first.statistics().parked)
        mutes.heard.clear()
        stand.clock.jump(10_001)
        async with stand.running(stand.worker()) as second:
            await stand.until(lambda: second.statistics().parked)
            mutes.heard.set()
            await stand.until(lambda: first.statistics().uncommitted == 0)
            stand.clock.jump(10_001)
            await stand.until(lambda: first.statistics().parked == 0)
            assert second.statistics().uncommitted == 1


async def test_a_partition_that_went_to_another_is_not_committed_by_the_one_that_lost_it(stand: Any) -> None:
    """Case 42: the handler outlasts the membership; the effect is there once, and nothing is skipped."""
    entered, release = asyncio.Event(), asyncio.Event()
    runs = 0

    @stand.app.task(queue="mail")
    async def slow(mail: Mail) -> None:
        nonlocal runs
        runs += 1
        entered.set()
        await release.wait()

    await stand.publish(stand.due(KEY))
    mutes = Mutes(stand.broker)
    async with stand.running(stand.worker(broker=mutes)) as first:
        await entered.wait()
        mutes.heard.clear()
        stand.clock.jump(10_001)
        async with stand.running(stand.worker()) as second:
            await stand.until(lambda: second.statistics().parked)
            release.set()
            await stand.outcomes(KEY)
            stand.clock.jump(30_001)
            await stand.outcomes(KEY, 2)
            await stand.until(lambda: not second.statistics().uncommitted)
        mutes.heard.set()
    assert runs == first.statistics().started + second.statistics().started == 1
    assert await stand.committed() == 1


async def test_the_loop_goes_on_polling_while_all_hands_are_full(stand: Any) -> None:
    entered, release = asyncio.Event(), asyncio.Event()

    @stand.app.task(queue="mail")
    async def slow(mail: Mail) -> None:
        entered.set()
        await release.wait()

    await stand.publish(*(stand.due(f"acme/{n}") for n in range(5)))
    async with stand.running(stand.worker(concurrency=1, poll_ms=1)) as worker:
        await entered.wait()
        polls = worker.statistics().polls
        await stand.until(lambda: worker.statistics().polls >= polls + 3)
        assert worker.statistics().in_hand == 1
        release.set()
        for n in range(5):
            await stand.outcomes(f"acme/{n}")
    assert await stand.committed() == 5


async def test_a_stop_lets_what_runs_come_to_its_end_and_gives_back_what_has_not_started(stand: Any) -> None:
    """Case 44: a deploy uses up no attempt of what it did not start."""
    entered, release = threading.Event(), threading.Event()

    @stand.app.task(queue="mail")
    def slow(mail: Mail) -> None:
        entered.set()
        release.wait()

    await stand.publish(*(stand.due(f"acme/{n}", options=Options(max_attempts=1)) for n in range(3)))
    async with asyncio.TaskGroup() as group:
        first = stand.worker(threads=1)
        running = group.create_task(first.run())
        await stand.until(lambda: first.statistics().in_hand == 3 and first.statistics().started == 1)
        first.stop()
        await stand.until(lambda: first.statistics().in_hand == 1)
        assert not running.done()
        release.set()
    assert first.statistics().done == 1
    assert await stand.committed() == 1
    assert await stand.ledger.running(stand.clock.now_ms()) == []
    async with stand.running(stand.worker()):
        for n in range(3):
            (outcome,) = await stand.outcomes(f"acme/{n}")
            assert (outcome.kind, outcome.starts) == ("done", 1)


async def test_a_stop_past_the_grace_interrupts_and_the_start_counts_once(stand: Any) -> None:
    entered = asyncio.Event()
    starts: list[int] = []

    @stand.app.task(queue="mail")
    async def slow(mail: Mail, ctx: AsyncContext) -> None:
        starts.append(ctx.starts)
        if ctx.starts == 1:
            entered.set()
            await asyncio.Event().wait()

    await stand.publish(stand.due(KEY))
    async with stand.running(stand.worker(grace_ms=1)):
        await entered.wait()
    async with stand.running(stand.worker()):
        (outcome,) = await stand.outcomes(KEY)
    assert (outcome.kind, outcome.starts, starts) == ("done", 2, [1, 2])


async def test_repeats_in_one_poll_run_once(stand: Any) -> None:
    runs = 0

    @stand.app.task(queue="mail")
    async def send(mail: Mail) -> None:
        nonlocal runs
        runs += 1

    message = stand.due(KEY)
    await stand.publish(message, message, message)
    async with stand.running(stand.worker()):
        await stand.outcomes(KEY)
    assert runs == 1
    assert await stand.committed() == 3


DEADLY = """
import asyncio, os, signal, sys, time
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.wire import Topics
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.sqlite_ledger import SqliteLedger
from minutewheel.worker import App, Worker, WorkerLimits

app = App("app")

@app.task(queue="mail")
def deadly(payload: dict) -> None:
    with open(sys.argv[1] + "/starts", "a") as starts:
        starts.write("started\\n")
    os.kill(os.getpid(), signal.SIGKILL)

async def main() -> None:
    now_ms = lambda: time.time_ns() // 1_000_000
    broker = await SqliteBroker.open(sys.argv[1] + "/broker.sqlite", at_once, now_ms, session_ms=300)
    ledger = await SqliteLedger.open(sys.argv[1] + "/ledger.sqlite", at_once)
    limits = WorkerLimits(hold_ms=300, renew_ms=100, poll_ms=50)
    worker = Worker(app, broker, ledger, topics=Topics("mw"), limits=limits)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run_until_signal())
        while worker.statistics().failed == 0:
            await asyncio.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(main())
"""


async def test_a_task_that_kills_its_worker_is_started_as_often_as_it_may_and_then_given_up(
    stand: Any, tmp_path: Path
) -> None:
    """Case 44, with real processes: three SIGKILLs, and the fourth worker says that it was the task."""
    broker = await SqliteBroker.open(str(tmp_path / "broker.sqlite"), at_once, stand.clock.now_ms)
    await broker.create_topics({"mw.outcomes": 64, "mw.due.mail": 1})
    await broker.produce([stand.due(KEY, options=Options(max_attempts=3))])
    exits = []
    while 0 not in exits:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", DEADLY, str(tmp_path))
        exits.append(await process.wait())
        assert len(exits) <= 4, exits
    assert exits == [-signal.SIGKILL] * 3 + [0]
    assert (tmp_path / "starts").read_text() == "started\n" * 3
    shard = shard_of(KEY)
    (record,) = (await broker.fetch("mw.outcomes", shard, 0, 10, 0)).records
    reported = decode_outcome(record, shard, 1, Topics("mw"))
    assert isinstance(reported, Reported)
    outcome = reported.outcome
    assert (outcome.kind, outcome.reason, outcome.retryable, outcome.starts) == ("failed", "worker lost", False, 3)
    await broker.close()
