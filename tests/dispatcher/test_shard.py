"""One reign from its claim to its end, over the real twins, with time moved by hand."""

from collections import Counter
from itertools import product
from typing import Any

import pytest
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.effects import Claim, Failed, Record
from minutewheel.dispatcher.memory import Budget
from minutewheel.dispatcher.shard import OVER, TRANSITIONS, Life
from minutewheel.store.errors import NotApplied, UnknownOutcome
from minutewheel.store.position import Log
from minutewheel.store.progress import Checkpoint

pytestmark = pytest.mark.pure

HOUR_MS = 3_600_000
CAUSES = sorted({what for _, what in TRANSITIONS})


# The life of a reign.


def test_whatever_is_not_in_the_table_is_refused(bench: Any) -> None:
    shard = bench.claim()
    for life, what in product(Life, CAUSES):
        shard.life = life
        if (life, what) in TRANSITIONS:
            shard._move(what)
            assert shard.life is TRANSITIONS[life, what]
        else:
            with pytest.raises(KeyError):
                shard._move(what)
            assert shard.life is life


def test_every_life_is_reached_and_leads_to_an_end() -> None:
    reached = {Life.CLAIMING}
    while more := {to for (life, _), to in TRANSITIONS.items() if life in reached} - reached:
        reached |= more
    assert reached == set(Life)
    for life in set(Life) - OVER:
        assert (life, "lose") in TRANSITIONS
    assert not any(life in OVER for life, _ in TRANSITIONS)


def test_a_reign_claims_catches_up_and_serves(bench: Any) -> None:
    shard = bench.claim()
    assert (shard.life, shard.claimed) == (Life.CLAIMING, False)
    assert shard.wants(Log.SUBMIT) is None
    assert shard.take_due(bench.now_ms, 9) == []
    (asked,) = shard.step(bench.now_ms)
    assert isinstance(asked.effect, Claim)
    bench._perform([asked])
    assert shard.claimed
    bench.settle()
    assert shard.life is Life.SERVING


def test_it_catches_up_while_there_is_something_from_before_its_claim(bench: Any) -> None:
    bench.submit(bench.IDS[0], bench.now_ms + HOUR_MS)
    shard = bench.claim()
    bench._perform(shard.step(bench.now_ms))
    assert shard.life is Life.CATCHING_UP
    bench.settle()
    assert shard.life is Life.SERVING
    assert bench.said() == ["accepted"]


def test_a_claim_that_is_refused_ends_the_reign_and_says_which_fence_stands(bench: Any) -> None:
    bench.claim(fence=9)
    bench.settle()
    shard = bench.claim(fence=4)
    bench.settle()
    assert (shard.life, shard.stored_fence, shard.reason) == (Life.LOST, 9, "claim refused")


def test_a_claim_of_unknown_outcome_is_made_again(bench: Any) -> None:
    shard = bench.claim()
    failed = iter([Failed(UnknownOutcome("late")), Failed(NotApplied("busy"))])
    bench.answers = lambda asked, answer: next(failed, answer) if isinstance(asked.effect, Claim) else answer
    bench.run(500)
    assert shard.life is Life.SERVING
    assert bench.progress().fence == 1


def test_a_reign_that_was_superseded_ends_with_its_next_record_and_marks_nothing(bench: Any) -> None:
    first = bench.claim()
    bench.submit(bench.IDS[0], bench.now_ms + 100)
    bench.run(500)
    bench.read(bench.store.claim(bench.SHARD, 50, "other", 1 << 40))
    before = bench.progress()
    bench.submit(bench.IDS[1], bench.now_ms + 10)
    bench.run(1_000)
    assert (first.life, first.reason) == (Life.LOST, "fence refused")
    assert bench.progress() == before
    assert bench.budget.tasks == 0


@pytest.mark.parametrize("life", sorted(OVER))
def test_one_that_is_over_does_nothing_more(bench: Any, life: Life) -> None:
    shard = bench.claim()
    bench.settle()
    shard.drain() if life is Life.RELEASED else shard.lose("gone")
    bench.run(1_000)
    assert shard.life is life
    assert shard.step(bench.now_ms) == []
    assert shard.resume("apply", None, bench.now_ms) == []
    assert shard.next_ms() is None
    assert [shard.wants(log) for log in Log] == [None, None, None]
    assert shard.take_due(bench.now_ms, 9) == []
    shard.drain()
    shard.lose("again")
    assert shard.life is life


def test_one_that_claims_yet_is_let_go_at_once(bench: Any) -> None:
    shard = bench.claim()
    shard.step(bench.now_ms)
    shard.drain()
    assert shard.life is Life.RELEASED
    assert shard.step(bench.now_ms) == []


# Firing.


def test_case_28_tasks_filed_into_a_minute_that_is_already_loaded(bench: Any) -> None:
    """At 20 s into a loaded minute 500 tasks due 0.5 to 30 s later, some overdue, and the minute's edge."""
    minute_ms = bench.START_MS
    bench.claim()
    bench.run(20_000)
    assert bench.shard.context.memory.loaded(minute_ms // 60_000)
    dues = {bench.IDS[n]: minute_ms + 20_500 + n * 29_500 // 499 for n in range(500)}
    past = {bench.IDS[500]: bench.now_ms - 5_000, bench.IDS[501]: bench.now_ms - 2 * HOUR_MS}
    edge = {bench.IDS[502]: minute_ms + 59_999, bench.IDS[503]: minute_ms + 60_000}
    bench.submit_many(dues | past | edge)
    at_ms = bench.now_ms
    bench.settle()
    assert bench.fired_ms.keys() == past.keys()
    bench.run(41_000)
    assert bench.counts() == dict.fromkeys(dues | past | edge, 1)
    for task_id, due_ms in (dues | edge).items():
        (fired_ms,) = bench.fired_ms[task_id]
        assert due_ms <= fired_ms <= due_ms + 10
    assert {bench.fired_ms[task_id][0] for task_id in past} == {at_ms}


def test_case_48_nothing_is_published_before_it_is_due_over_restarts_and_moves(bench: Any) -> None:
    bench.claim()
    due_ms = bench.START_MS + 6 * HOUR_MS
    bench.submit(bench.IDS[0], due_ms)
    for _ in range(5):
        bench.now_ms += HOUR_MS - 5_000
        bench.run(5_000)
        bench.shard.drain()
        bench.settle()
        bench.claim()
    bench.now_ms += HOUR_MS - 60_000
    bench.run(59_999)
    assert bench.delivered() == []
    bench.run(50)
    assert bench.counts() == {bench.IDS[0]: 1}
    assert due_ms <= bench.fired_ms[bench.IDS[0]][0] <= due_ms + 10


FAR = {
    "in 25 days": 25 * 86_400_000 + 1_790_000_000_000,
    "2038": 2_147_483_648_000,
    "2100": 4_102_444_800_000,
    "2262": 9_223_372_800_000,
    "9999": 253_402_300_799_000,
}


def test_case_54_far_off_tasks_are_stored_cancellable_and_do_not_fire(bench: Any) -> None:
    bench.claim()
    ids = dict(zip(bench.IDS, FAR.values(), strict=False))
    for task_id, due_ms in ids.items():
        bench.submit(task_id, due_ms)
    bench.run(5_000)
    for task_id, due_ms in ids.items():
        row = bench.row(task_id)
        assert (row.state, row.due_ms, row.minute) == ("scheduled", due_ms, due_ms // 60_000)
        (filed,) = bench.read(bench.store.page(bench.SHARD, row.minute, 0, (-1, -1), 9))
        assert filed.due_ms == due_ms
    bench.shard.drain()
    bench.settle()
    bench.claim()
    for task_id in ids:
        bench.produce(bench.composer.cancel("default", task_id, receipt="r"))
    bench.run(90_000)
    assert Counter(bench.said()) == {"accepted": len(ids), "cancelled": len(ids)}
    assert bench.delivered() == []
    assert {bench.row(task_id).state for task_id in ids} == {"cancelled"}


def test_case_53_a_clock_that_steps_back_an_hour(bench: Any) -> None:
    """At 12:00:30, tasks of 12:00 fired: they do not fire again at the second 12:00, and the others not early."""
    bench.claim()
    noon_ms = bench.START_MS
    first, second, new = bench.IDS[:3]
    bench.submit_many({first: noon_ms + 10_000, second: noon_ms + 60_000})
    bench.run(30_500)
    assert bench.counts() == {first: 1}
    bench.now_ms -= HOUR_MS
    bench.submit(new, bench.now_ms + 200)
    bench.run(HOUR_MS + 29_400)
    assert bench.counts() == {first: 1, new: 1}
    assert bench.now_ms < noon_ms + 60_000
    bench.run(500)
    assert bench.counts() == {first: 1, new: 1, second: 1}
    assert bench.fired_ms[second][0] >= noon_ms + 60_000


def test_case_53_a_clock_that_steps_forward_a_day(bench: Any) -> None:
    bench.claim()
    dues = {bench.IDS[n]: bench.START_MS + n * 60_000 for n in range(1, 30)}
    bench.submit_many(dues)
    bench.run(30_500)
    bench.now_ms += 24 * HOUR_MS
    for _ in range(20):
        bench.run(1_000)
    assert bench.counts() == dict.fromkeys(dues, 1)
    bench.run(180_000)
    assert bench.counts() == dict.fromkeys(dues, 1)
    assert bench.shard.context.counts.remainders == 0


@pytest.mark.parametrize("slew_ms", [-500, 500])
def test_case_53_a_clock_that_is_slewed(bench: Any, slew_ms: int) -> None:
    bench.claim()
    dues = {bench.IDS[n]: bench.START_MS + 100 * n for n in range(40)}
    bench.submit_many(dues)
    bench.run(2_000)
    bench.now_ms += slew_ms
    bench.run(3_000)
    assert bench.counts() == dict.fromkeys(dues, 1)
    assert all(bench.fired_ms[task_id][0] >= due_ms for task_id, due_ms in dues.items())


def test_case_30_more_is_due_than_memory_holds(bench: Any) -> None:
    """1,000 due in half a minute, room for 200: it holds a page more at the most, and all fire, once."""
    bench.claim()
    dues = {bench.IDS[n]: bench.START_MS + 120_000 + n * 30 for n in range(1_000)}
    bench.submit_many(dues)
    bench.run(1_000)
    bench.shard.drain()
    bench.settle()
    limits = Limits(page_rows=50)
    bench.claim(limits=limits, budget=Budget(tasks_max=200))
    bench.peak = 0
    bench.run(160_000)
    assert bench.counts() == dict.fromkeys(dues, 1)
    assert 200 <= bench.peak <= 200 + limits.page_rows
    assert bench.budget.tasks == bench.budget.bytes == 0
    bench.run(60_000)
    assert bench.progress().open_minute >= (bench.START_MS + 180_000) // 60_000
    assert bench.shard.context.counts.remainders == 0


def test_case_30_what_is_overdue_after_an_outage_comes_in_pages_too(bench: Any) -> None:
    bench.claim()
    dues = {bench.IDS[n]: bench.START_MS + 120_000 + n % 7 * 60_000 for n in range(1_000)}
    bench.submit_many(dues)
    bench.run(1_000)
    bench.shard.lose("killed")
    bench.now_ms += HOUR_MS
    limits = Limits(page_rows=50)
    bench.claim(limits=limits, budget=Budget(tasks_max=200))
    bench.peak = 0
    for _ in range(400):  # the broker takes a hundred at a time
        bench.settle(publish=False)
        dues_out = bench.gate.release(bench.now_ms, 100)
        bench.shard.released(dues_out)
        bench.shard.fired(dues_out, bench.now_ms)
        bench.run(100, publish=False)
        if len(bench.shard.context.memory.forgotten) == 0 and not bench.budget.tasks:
            break
    assert bench.shard.context.counts.fired == len(dues)
    assert bench.peak <= 200 + limits.page_rows


# While the store does not take progress.


def test_firing_stops_at_so_many_unrecorded_marks_and_goes_on_when_they_are_recorded(bench: Any) -> None:
    shard = bench.claim(limits=Limits(unrecorded_max=10))
    bench.run(1_000)
    bench.submit_many({bench.IDS[n]: bench.now_ms + 500 + 100 * n for n in range(30)})
    bench.run(300)
    bench.down = lambda effect: isinstance(effect, Record)
    bench.run(10_000)
    assert shard.context.journal.unrecorded == 10
    assert len(bench.delivered()) == 10
    bench.down = lambda _: False
    bench.run(10_000)
    assert len(bench.delivered()) == 30
    assert shard.context.journal.unrecorded == 0


def test_firing_stops_so_long_after_the_last_record(bench: Any) -> None:
    bench.claim(limits=Limits(unrecorded_ms_max=5_000))
    bench.run(1_000)
    bench.submit_many({bench.IDS[n]: bench.now_ms + 1_000 * n for n in range(20)})
    bench.run(500)
    bench.down = lambda effect: isinstance(effect, Record)
    bench.run(18_000)
    assert 5 <= len(bench.delivered()) <= 7
    bench.down = lambda _: False
    bench.run(8_000)
    assert len(bench.delivered()) == 20


# Hand-over.


def test_a_drain_finishes_what_flies_records_it_and_leaves_the_rest(bench: Any) -> None:
    """It marks nothing that it did not publish, and the next owner publishes exactly the rest."""
    shard = bench.claim()
    bench.submit_many({bench.IDS[n]: bench.now_ms + 1_000 for n in range(30)})
    bench.run(999)
    bench.run(5, publish=False)
    flying = bench.gate.release(bench.now_ms, 10)
    shard.released(flying)
    shard.drain()
    bench.run(2_000, publish=False)
    assert shard.life is Life.DRAINING
    assert bench.gate.release(bench.now_ms, 99) == []
    shard.fired(flying, bench.now_ms)
    bench.run(2_000, publish=False)
    assert shard.life is Life.RELEASED
    minute = bench.START_MS // 60_000
    stored = bench.read(bench.store.marks(bench.SHARD, [minute]))[minute]
    assert stored.fired == {due.filing for due in flying}
    assert bench.budget.tasks == 0
    bench.claim()
    bench.run(3_000)
    assert len(bench.delivered()) == 20
    assert not {one.filing for one in bench.delivered()} & stored.fired


def test_a_drain_applies_what_it_has_begun_and_takes_nothing_more(bench: Any) -> None:
    shard = bench.claim()
    bench.settle()
    bench.submit(bench.IDS[0], bench.now_ms + HOUR_MS)
    bench._read(Log.SUBMIT)
    asked = shard.step(bench.now_ms)
    shard.drain()
    bench.submit(bench.IDS[1], bench.now_ms + HOUR_MS)
    bench._perform(asked)
    bench.run(1_000)
    assert shard.life is Life.RELEASED
    assert bench.said() == ["accepted"]
    assert bench.progress().offsets == shard.context.intake.offsets()
    bench.claim()
    bench.run(1_000)
    assert bench.said() == ["accepted", "accepted"]


def test_what_could_not_be_published_is_held_again_or_left_to_the_next_owner(bench: Any) -> None:
    shard = bench.claim()
    bench.submit_many({bench.IDS[n]: bench.now_ms for n in range(4)})
    bench.settle(publish=False)
    dues = bench.gate.release(bench.now_ms, 9)
    shard.released(dues)
    shard.put_back(dues[:2])
    assert all(due.live for due in dues)
    shard.drain()
    shard.put_back(dues[2:])
    assert not any(due.live for due in dues)
    bench.run(1_000, publish=False)
    assert shard.life is Life.RELEASED
    assert bench.delivered() == []
    bench.claim()
    bench.run(1_000)
    assert len(bench.delivered()) == 4


def test_a_shard_that_is_lost_gives_its_part_of_the_budget_back_and_lets_nothing_go(bench: Any) -> None:
    shard = bench.claim()
    bench.submit_many({bench.IDS[n]: bench.now_ms + 500 * (n % 2) for n in range(10)})
    bench.settle(publish=False)
    assert bench.budget.tasks == 10
    shard.lose("session over")
    assert (bench.budget.tasks, bench.budget.bytes) == (0, 0)
    assert bench.gate.release(bench.now_ms, 99) == []


def test_a_successor_goes_on_where_the_last_record_stands_after_a_kill(bench: Any) -> None:
    """Case 30: killed at any moment, each task is delivered at least once, and repeats are what was not recorded."""
    bench.claim()
    dues = {bench.IDS[n]: bench.START_MS + 500 + 37 * n for n in range(200)}
    bench.submit_many(dues)
    recorded = 0
    for kill in range(6):
        bench.run(900 + 211 * kill)
        unrecorded = bench.shard.context.journal.unrecorded
        recorded += unrecorded
        bench.shard.lose("killed")
        bench.claim()
    bench.run(10_000)
    counts = bench.counts()
    assert counts.keys() == dues.keys()
    assert sum(counts.values()) - len(dues) <= recorded


def test_numbers_of_checkpoints_rise_over_reigns(bench: Any) -> None:
    numbers: list[int] = []

    def note(asked: Any, answer: Any) -> Any:
        if isinstance(asked.effect, Record) and isinstance(asked.effect.checkpoint, Checkpoint):
            numbers.append(asked.effect.checkpoint.number)
        return answer

    bench.answers = note
    for reign in range(3):
        bench.claim()
        bench.submit(bench.IDS[reign], bench.now_ms)
        bench.run(1_000)
    assert numbers == sorted(set(numbers))
    assert {number >> 32 for number in numbers} == {1, 2, 3}
