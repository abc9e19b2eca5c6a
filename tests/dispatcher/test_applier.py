"""How batches are applied, in a whole shard over the real twins: what is written, in which order, and what is said."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from minutewheel.broker.compose import Submission
from minutewheel.broker.due import Delivered
from minutewheel.broker.outcome import Outcome, outcome_message
from minutewheel.broker.wire import Message
from minutewheel.dispatcher.activity import Asked
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.effects import Failed, LookUp, Produce, Record, Write
from minutewheel.store.errors import NotApplied, UnknownOutcome
from minutewheel.store.position import Log, log_of, pack_position
from minutewheel.store.record import fence_of
from minutewheel.store.task import BucketRow, DeadLetter, TaskRow

pytestmark = pytest.mark.pure

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


@pytest.fixture
def serving(bench: Any) -> Any:
    bench.claim()
    bench.run(1_000)
    return bench


def watch(bench: Any) -> list[str]:
    """What the applier and the checkpointer have done, as it was done."""
    done: list[str] = []

    def note(asked: Asked, answer: Any) -> Any:
        effect = asked.effect
        match effect:
            case Write(_, rows):
                done.append("+".join(sorted({type(row).__name__ for row in rows})))
            case LookUp() | Record() | Produce():
                done.append(type(effect).__name__)
        return answer

    bench.answers = note
    return done


def ask(bench: Any, verb: str, task_id: str, **more: Any) -> None:
    bench.produce(getattr(bench.composer, verb)("default", task_id, receipt="r", **more))


def only(bench: Any) -> Delivered:
    (delivered,) = bench.delivered()
    return delivered


# Order of writes.


def test_a_new_task_is_looked_up_filed_and_pointed_to_without_a_checkpoint_and_answered_after_one(
    serving: Any,
) -> None:
    """Rule A: the bucket row before the task row; rule P: a checkpoint before the receipt; rule O: then the offset."""
    done = watch(serving)
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.settle()
    serving.run(1_100)
    assert done == ["LookUp", "BucketRow", "TaskRow", "Record", "Produce", "Record"]
    assert serving.said() == ["accepted"]
    assert serving.progress().offsets[0] == pack_position(1, 1)


def test_an_existing_row_is_changed_only_after_a_checkpoint_that_began_since_it_was_read(serving: Any) -> None:
    """Rules M and N."""
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.run(1_000)
    serving.claim()
    serving.run(1_000)
    done = watch(serving)
    ask(serving, "cancel", serving.IDS[0])
    serving.run(1_000)
    assert [one for one in done if one != "Record"] == ["LookUp", "TaskRow", "Produce"]
    assert done.index("LookUp") < done.index("Record") < done.index("TaskRow")
    row = serving.row(serving.IDS[0])
    stored = serving.read(serving.store.marks(serving.SHARD, [row.minute]))[row.minute]
    assert stored.removed == {row.filing}


def test_what_this_reign_wrote_last_is_changed_without_reading_it_and_still_after_a_checkpoint(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.run(1_000)
    done = watch(serving)
    ask(serving, "reschedule", serving.IDS[0], due=serving.now_ms + 2 * HOUR_MS)
    serving.run(1_000)
    ask(serving, "cancel", serving.IDS[0])
    serving.run(1_000)
    assert "LookUp" not in done
    assert [one for one in done if one != "Record"] == ["BucketRow", "TaskRow", "Produce", "TaskRow", "Produce"]
    assert "Record" in done[: done.index("TaskRow")]
    assert serving.said() == ["accepted", "rescheduled", "cancelled"]
    assert serving.row(serving.IDS[0]).state == "cancelled"


def test_what_is_over_is_read_again(serving: Any) -> None:
    """A final row leaves the store when its time is over, and nobody says so."""
    due_ms = serving.now_ms + HOUR_MS
    serving.submit(serving.IDS[0], due_ms)
    ask(serving, "cancel", serving.IDS[0])
    serving.run(1_000)
    done = watch(serving)
    serving.submit(serving.IDS[0], due_ms)
    serving.run(1_000)
    assert done[0] == "LookUp"
    assert serving.said() == ["accepted", "cancelled", "duplicate"]


def test_a_batch_needs_one_checkpoint_however_many_rows_change(serving: Any) -> None:
    serving.submit_many({serving.IDS[n]: serving.now_ms + HOUR_MS + n for n in range(50)})
    serving.run(1_000)
    done = watch(serving)
    for n in range(50):
        ask(serving, "cancel", serving.IDS[n])
    serving.run(1_500)
    assert Counter(done)["Record"] <= 3
    assert Counter(serving.said())["cancelled"] == 50


def test_one_command_of_a_key_waits_for_the_receipt_of_the_one_before(serving: Any) -> None:
    """Rules U and X."""
    task_id = serving.IDS[0]
    serving.submit(task_id, serving.now_ms + HOUR_MS)
    ask(serving, "reschedule", task_id, due=serving.now_ms + 2 * HOUR_MS)
    ask(serving, "cancel", task_id)
    serving.submit(task_id, serving.now_ms + HOUR_MS)
    serving.run(3_000)
    assert serving.said() == ["accepted", "rescheduled", "cancelled", "duplicate"]
    assert serving.row(task_id).state == "cancelled"


@pytest.mark.parametrize("error", [NotApplied("busy"), UnknownOutcome("late")])
@pytest.mark.parametrize("kind", [LookUp, Write, Produce])
def test_whatever_fails_is_done_again_until_it_went_well(serving: Any, kind: type, error: Exception) -> None:
    """Though it was done all the same: nothing is there twice but the receipt."""
    left = [3]

    def fail(asked: Asked, answer: Any) -> Any:
        if isinstance(asked.effect, kind) and left[0]:
            left[0] -= 1
            return Failed(error)
        return answer

    serving.answers = fail
    serving.submit(serving.IDS[0], serving.now_ms + 2_000)
    serving.run(5_000)
    assert serving.counts() == {serving.IDS[0]: 1}
    assert set(serving.said()) == {"accepted"}


# What happens to tasks.


def test_cancelled_in_time_it_never_runs(serving: Any) -> None:
    task_id = serving.IDS[0]
    serving.submit(task_id, serving.now_ms + 3_000)
    serving.run(1_000)
    ask(serving, "cancel", task_id)
    serving.run(10_000)
    assert serving.said() == ["accepted", "cancelled"]
    assert serving.delivered() == []


def test_cancelled_while_it_stands_at_the_gate_it_never_runs(serving: Any) -> None:
    task_id = serving.IDS[0]
    serving.gate.hold("mail", "paused", serving.now_ms)
    serving.submit(task_id, serving.now_ms + 100)
    serving.run(1_000)
    ask(serving, "cancel", task_id)
    serving.run(1_000)
    serving.gate.resume("mail", serving.now_ms)
    serving.run(1_000)
    assert serving.said() == ["accepted", "cancelled"]
    assert serving.delivered() == []


def test_cancelled_too_late_it_runs_and_the_answer_waits_for_the_durable_mark(serving: Any) -> None:
    """Rule P, and case 50: the answer is true."""
    task_id = serving.IDS[0]
    serving.submit(task_id, serving.now_ms + 100)
    serving.run(200, publish=False)
    (due,) = dues = serving.gate.release(serving.now_ms, 9)
    serving.shard.released(dues)
    ask(serving, "cancel", task_id)
    serving.run(3_000, publish=False)
    assert serving.said() == ["accepted"]
    serving.shard.fired(dues, serving.now_ms)
    serving.run(1_000, publish=False)
    assert serving.said() == ["accepted", "too_late"]
    assert due.filing in serving.read(serving.store.marks(serving.SHARD, [due.minute]))[due.minute].fired
    assert serving.row(task_id).ended


def test_cancelled_too_late_and_put_back_it_runs_all_the_same(serving: Any) -> None:
    """What was said of it while it flew must come true: the answer waits until it is fired."""
    task_id = serving.IDS[0]
    serving.submit(task_id, serving.now_ms + 100)
    serving.run(200, publish=False)
    dues = serving.gate.release(serving.now_ms, 9)
    serving.shard.released(dues)
    ask(serving, "cancel", task_id)
    serving.run(1_000, publish=False)
    serving.shard.put_back(dues)
    serving.gate.offer([due for due in dues if due.live], serving.now_ms)
    serving.run(2_000)
    assert serving.counts() == {task_id: 1}
    assert serving.said() == ["accepted", "too_late"]
    row = serving.row(task_id)
    assert row.filing in serving.shard.context.journal.marks(row.minute).fired


def test_rescheduled_it_runs_at_the_new_time_only(serving: Any) -> None:
    task_id, later_ms = serving.IDS[0], serving.now_ms + 4_000
    serving.submit(task_id, serving.now_ms + 2_000, payload=b"kept")
    serving.run(500)
    ask(serving, "reschedule", task_id, due=later_ms)
    serving.run(6_000)
    assert serving.fired_ms[task_id] == [at for at in serving.fired_ms[task_id] if later_ms <= at <= later_ms + 10]
    assert (only(serving).payload, only(serving).due_ms) == (b"kept", later_ms)
    assert serving.said() == ["accepted", "rescheduled"]


def test_replaced_it_runs_in_the_new_version_only(serving: Any) -> None:
    task_id = serving.IDS[0]
    serving.submit(task_id, serving.now_ms + 2_000, payload=b"old")
    serving.run(500)
    serving.submit(task_id, serving.now_ms + 3_000, payload=b"new", on_conflict="replace")
    serving.run(6_000)
    assert only(serving).payload == b"new"


def test_failed_it_is_tried_again_until_it_is_dead_then_redriven_and_done(serving: Any) -> None:
    task_id = serving.IDS[0]
    serving.submit(task_id, serving.now_ms, max_attempts=2)
    serving.settle()
    serving.report(serving.delivered()[-1], "failed", starts=1, reason="no 1", delay_ms=500)
    serving.run(3_000)
    assert [one.attempt for one in serving.delivered()] == [1, 2]
    assert serving.delivered()[1].task.starts == 1
    serving.report(serving.delivered()[-1], "failed", starts=2, reason="no 2")
    serving.run(3_000)
    assert serving.row(task_id).state == "dead"
    (letter,) = serving.read(serving.store.dead_letters(serving.SHARD, "", 9))
    assert (letter.reason, letter.attempts) == ("no 2", 2)
    (record,) = serving.records(serving.TOPICS.dead)
    assert record.value == b"body"
    ask(serving, "redrive", task_id)
    serving.run(1_000)
    assert serving.read(serving.store.dead_letters(serving.SHARD, "", 9)) == []
    again = serving.delivered()[-1]
    assert (again.attempt, again.task.starts, again.payload) == (1, 0, b"body")
    serving.report(again)
    serving.run(1_000)
    assert serving.row(task_id).state == "done"
    assert serving.said() == ["accepted", "dead", "redriven", "done"]
    assert len({one.filing for one in serving.delivered()}) == 3


def test_a_retry_is_filed_from_its_outcome_alone_though_the_bucket_is_gone(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms, payload=b"carried")
    serving.run(5 * MINUTE_MS)
    first = only(serving)
    assert serving.progress().dropped_minute >= first.minute
    serving.report(first, "failed", delay_ms=1_000)
    serving.run(3_000)
    assert [one.payload for one in serving.delivered()] == [b"carried", b"carried"]


def test_a_foreign_worker_names_the_due_record_instead_of_carrying_it_back(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms, payload=b"named")
    serving.settle()
    first = only(serving)
    serving.produce(bare(serving, first, first.offset))
    serving.run(3_000)
    assert [one.payload for one in serving.delivered()] == [b"named", b"named"]


def test_a_due_record_that_is_not_there_leaves_nothing_to_try_again(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.settle()
    serving.produce(bare(serving, only(serving), 999))
    serving.run(3_000)
    row = serving.row(serving.IDS[0])
    assert row.state == "dead"
    assert "not there" in row.note


def bare(bench: Any, delivered: Delivered, offset: int) -> Message:
    return outcome_message(
        bench.TOPICS,
        Outcome(
            kind="failed",
            key=delivered.key,
            shard=delivered.shard,
            minute=delivered.minute,
            filing=delivered.filing,
            origin=delivered.origin,
            starts=1,
            delay_ms=1_000,
            due_at=(bench.TOPICS.due("mail"), delivered.partition, offset),
        ),
    )


# Batches.


def test_the_batch_grows_with_the_backlog_up_to_its_bound(bench: Any) -> None:
    bench.claim(limits=Limits(batch_max=30))
    bench.run(1_000)
    sizes: list[int] = []

    def note(asked: Asked, answer: Any) -> Any:
        if isinstance(asked.effect, LookUp):
            sizes.append(len(asked.effect.keys))
        return answer

    bench.answers = note
    bench.submit(bench.IDS[0], bench.now_ms + HOUR_MS)
    bench.settle()
    bench.submit_many({bench.IDS[n]: bench.now_ms + HOUR_MS for n in range(1, 101)})
    bench.run(1_000)
    assert sizes == [1, 30, 30, 30, 10]


def test_refused_and_forwarded_ones_do_not_block_their_neighbours(serving: Any) -> None:
    """Case 43, between two good tasks."""
    first, second = serving.IDS[:2]
    submit = serving.TOPICS.submit
    serving.submit(first, serving.now_ms)
    bad = [b"", None, b"\xff\xfe", b'{"id": "', b'{"v": 99, "id": "x"}', b"[" * 500_000]
    serving.produce(*(Message(submit, None, value, (), serving.SHARD) for value in bad))
    serving.submit(second, serving.now_ms)
    serving.run(1_000)
    assert serving.counts() == {first: 1, second: 1}
    rejected = serving.records(serving.TOPICS.rejected)
    assert [record.value for record in rejected][:5] == bad[:5]
    codes = [dict(record.headers)["mw_code"] for record in rejected]
    assert len(codes) == len(bad)
    assert all(codes)
    assert serving.progress().offsets[0] == pack_position(1, len(bad) + 2)


def test_a_command_in_the_wrong_partition_goes_to_its_own_shard(serving: Any) -> None:
    items = (serving.composer.item(Submission(id=f"o{n}", queue="mail", due=serving.now_ms)) for n in range(99))
    item = next(item for item in items if item.shard != serving.SHARD)
    serving.produce(
        Message(serving.TOPICS.submit, b"k", item.value, (("content-type", b"application/msgpack"),), serving.SHARD)
    )
    serving.run(500)
    (record,) = serving.records(serving.TOPICS.forwarded)
    assert record.partition == item.shard
    assert record.value == item.value
    assert serving.delivered() == []


# Places.


def test_a_task_due_in_a_minute_that_is_shut_is_filed_in_the_open_one(serving: Any) -> None:
    serving.run(5 * MINUTE_MS)
    open_minute = serving.shard.context.journal.open_minute
    assert open_minute > serving.START_MS // MINUTE_MS
    serving.submit(serving.IDS[0], serving.START_MS)
    serving.settle()
    row = serving.row(serving.IDS[0])
    assert (row.minute, row.due_ms) == (open_minute, serving.START_MS)
    assert serving.counts() == {serving.IDS[0]: 1}


def test_a_large_bucket_gets_pieces_and_all_of_them_are_loaded_merged_and_closed(bench: Any) -> None:
    limits = Limits(piece_rows_max=7, page_rows=3)
    bench.claim(limits=limits)
    minute = bench.START_MS // MINUTE_MS + 2
    dues = {bench.IDS[n]: minute * MINUTE_MS + 100 * (n % 13) for n in range(40)}
    for task_id, due_ms in dues.items():
        bench.submit(task_id, due_ms)
        bench.run(300)
    assert 4 <= dict(bench.progress().pieces)[minute] <= 6
    bench.shard.drain()
    bench.settle()
    bench.claim(limits=limits)
    bench.run(4 * MINUTE_MS)
    assert bench.counts() == dict.fromkeys(dues, 1)
    assert all(dues[i] <= at[0] <= dues[i] + 10 for i, at in bench.fired_ms.items())
    closing = bench.read(bench.store.closing(bench.SHARD, minute))
    assert (closing.rows, closing.fired, closing.removed, closing.late) == (40, 40, 0, 0)


# Replay.


def rows_of(bench: Any) -> tuple[list[TaskRow], list[BucketRow]]:
    tasks = bench.read(bench.store.tasks(bench.SHARD, [f"default/{task_id}" for task_id in bench.IDS[:9]]))
    minutes = range(bench.START_MS // MINUTE_MS, bench.START_MS // MINUTE_MS + 200)
    pages = [bench.read(bench.store.page(bench.SHARD, minute, 0, (-1, -1), 99)) for minute in minutes]
    return sorted(tasks, key=lambda row: row.key), [row for page in pages for row in page]


def test_a_replay_by_the_next_owner_writes_the_same_rows_under_its_own_fence(bench: Any) -> None:
    """Rules D, G and R: the offsets were never recorded, so all is read and applied again."""
    bench.claim()
    bench.run(1_000)
    bench.down = lambda effect: isinstance(effect, Record)
    for n in range(3):
        bench.submit(bench.IDS[n], bench.now_ms + HOUR_MS + n)
    bench.submit(bench.IDS[3], bench.now_ms - 1)
    bench.settle()
    assert bench.progress().offsets[0] == pack_position(1, 0)
    before_tasks, before_filings = rows_of(bench)
    bench.shard.lose("killed")
    bench.down = lambda _: False
    bench.now_ms += 10_000
    bench.claim()
    bench.run(1_000)
    tasks, filings = rows_of(bench)
    assert tasks == before_tasks
    assert [(row.due_ms, row.filing) for row in filings] == [(row.due_ms, row.filing) for row in before_filings]
    assert {fence_of(row.record) for row in filings} == {2}
    assert Counter(bench.said()) == {"accepted": 4}  # the first owner could not know that it still was one
    assert bench.counts() == {bench.IDS[3]: 2}  # its mark was not recorded


def test_letters_are_written_before_the_row_that_says_dead(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms, max_attempts=1)
    serving.run(1_000)
    done = watch(serving)
    serving.report(only(serving), "failed")
    serving.run(1_000)
    assert [one for one in done if one.endswith(("Row", "Letter"))] == [DeadLetter.__name__, TaskRow.__name__]


def test_filings_carry_the_log_that_caused_them(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.settle()
    serving.report(only(serving), "failed", delay_ms=HOUR_MS)
    serving.run(1_000)
    assert log_of(only(serving).filing) is Log.SUBMIT
    assert log_of(serving.row(serving.IDS[0]).filing) is Log.OUTCOMES


def test_a_queue_without_outcomes_settles_when_it_is_published(benches: Callable[..., Any]) -> None:
    bench = benches(queues=("metrics",))
    bench.silent = {"metrics"}
    bench.claim()
    bench.submit(bench.IDS[0], bench.now_ms, queue="metrics")
    bench.run(2_000)
    assert len(bench.delivered("metrics")) == 1
    assert bench.row(bench.IDS[0]).state == "done"
    assert bench.said() == ["accepted", "done"]


def test_case_41_a_task_that_the_broker_no_longer_takes_goes_to_the_dead_letters(bench: Any) -> None:
    big, small, other = bench.IDS[:3]
    bench.claim()
    for task_id, size in ((small, 10), (big, 50_000), (other, 10)):
        bench.submit(task_id, bench.now_ms + 1_000, payload=b"x" * size)
    bench.settle()
    assert bench.said() == ["accepted"] * 3
    bench.due_bytes_max = 40_000
    bench.run(3_000)
    assert bench.counts() == {small: 1, other: 1}
    (letter,) = bench.read(bench.store.dead_letters(bench.SHARD, "", 9))
    assert letter.key == f"default/{big}"
    assert letter.reason.startswith("too_large")
    assert bench.row(big).state == "dead"
    assert Counter(bench.said()) == {"accepted": 3, "dead": 1}


def test_what_only_ends_tasks_is_gathered_for_one_record_a_second_and_delays_nobody(serving: Any) -> None:
    count = 8
    serving.submit_many({serving.IDS[n]: serving.now_ms for n in range(count)})
    serving.run(1_500)
    ended = serving.delivered()
    assert len(ended) == count
    done = watch(serving)
    for n, delivered in enumerate(ended):
        serving.report(delivered)
        serving.settle()
        serving.submit(serving.IDS[count + n], serving.now_ms, receipt=None)
        serving.settle()
        assert len(serving.delivered()) == count + n + 1  # at once: no record is waited for before it
        serving.run(120)
    serving.run(1_000)
    assert 1 <= done.count("Record") <= 3
    assert {serving.row(serving.IDS[n]).state for n in range(count)} == {"done"}


def test_what_fails_is_not_gathered(serving: Any) -> None:
    """Its next attempt may be due before long."""
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.run(1_500)
    serving.submit(serving.IDS[1], serving.now_ms)
    serving.run(400)
    serving.report(serving.delivered()[0], "failed", delay_ms=1)
    serving.run(300)
    assert len(serving.delivered()) == 3


def test_a_batch_of_ends_is_not_gathered_further(bench: Any) -> None:
    bench.claim(limits=Limits(batch_max=2))
    bench.run(1_000)
    for n in range(3):
        bench.submit(bench.IDS[n], bench.now_ms, receipt=None)
    bench.run(2_500)
    bench.submit(bench.IDS[3], bench.now_ms, receipt=None)
    bench.run(100)
    first, second, third, _ = bench.delivered()
    bench.report(first)
    bench.run(300)
    assert {bench.row(one.id).state for one in (first, second, third)} == {"scheduled"}
    bench.report(second)
    bench.run(300)
    assert [bench.row(one.id).state for one in (first, second, third)] == ["done", "done", "scheduled"]
