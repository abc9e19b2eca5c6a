"""When progress is recorded, and what follows if nobody knows whether it was."""

from typing import Any

import pytest
from minutewheel.dispatcher.activity import RETRY_FIRST_MS, Asked
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.effects import Failed, ReadProgress, Record
from minutewheel.dispatcher.shard import Life
from minutewheel.store.errors import NotApplied, UnknownOutcome

pytestmark = pytest.mark.pure


class Watch:
    """When checkpoints were asked for and which, and how many serial reads there were."""

    def __init__(self, bench: Any) -> None:
        self.at_ms: list[int] = []
        self.numbers: list[int] = []
        self.reads = 0
        self.failing: list[Exception] = []
        self._bench = bench
        bench.answers = self.note

    def note(self, asked: Asked, answer: Any) -> Any:
        if isinstance(asked.effect, ReadProgress):
            self.reads += 1
        if not isinstance(asked.effect, Record):
            return answer
        self.at_ms.append(self._bench.now_ms)
        self.numbers.append(asked.effect.checkpoint.number)
        return Failed(self.failing.pop(0)) if self.failing else answer


@pytest.fixture
def serving(bench: Any) -> Any:
    bench.claim()
    bench.run(1_000)
    return bench


def busy(bench: Any, count: int, gap_ms: int) -> None:
    """Something to record at every moment."""
    bench.submit_many({bench.IDS[n]: bench.now_ms + gap_ms * n for n in range(count)})


def test_nothing_is_recorded_while_there_is_nothing(serving: Any) -> None:
    watch = Watch(serving)
    serving.run(20_000)
    assert watch.numbers == []


def test_once_a_second_under_load_however_many_tasks_fire(serving: Any) -> None:
    watch = Watch(serving)
    busy(serving, 250, 20)
    serving.run(5_000)
    assert 4 <= len(watch.numbers) <= 6
    gaps = [after - before for before, after in zip(watch.at_ms, watch.at_ms[1:], strict=False)]
    assert min(gaps) >= 1_000
    assert watch.numbers == sorted(set(watch.numbers))


def test_four_times_a_second_while_receipts_wait_for_it(serving: Any) -> None:
    watch = Watch(serving)
    for n in range(250):
        serving.submit(serving.IDS[n], serving.now_ms)
        serving.run(20)
    assert 18 <= len(watch.numbers) <= 22
    gaps = [after - before for before, after in zip(watch.at_ms, watch.at_ms[1:], strict=False)]
    assert min(gaps) >= 250


def test_at_half_of_what_may_be_unrecorded_it_is_not_put_off(bench: Any) -> None:
    """So firing need not stop for want of a record that only nobody had waited for."""
    bench.claim(limits=Limits(unrecorded_max=10))
    bench.run(1_000)
    watch = Watch(bench)
    busy(bench, 20, 50)
    bench.run(1_200)
    assert 3 <= len(watch.numbers) <= 5
    assert bench.counts() == {bench.IDS[n]: 1 for n in range(20)}


def test_a_clock_that_is_set_back_puts_nothing_off(serving: Any) -> None:
    watch = Watch(serving)
    busy(serving, 1, 0)
    serving.run(100)
    serving.now_ms -= 3_600_000
    busy(serving, 1, 0)
    serving.run(1_100)
    assert len(watch.numbers) >= 2


def test_more_slowly_when_the_store_is_slow_up_to_a_bound(bench: Any) -> None:
    """The next begins after twice the time that the last one took, two seconds at the most."""
    shard = bench.claim(limits=Limits(checkpoint_relaxed_ms=250))
    bench.run(1_000)
    busy(bench, 400, 50)
    began: list[int] = []
    for took_ms in (300, 5_000):
        while True:  # let time pass until a checkpoint is asked for, and answer it late
            asked = shard.step(bench.now_ms)
            records = [one for one in asked if isinstance(one.effect, Record)]
            bench._perform([one for one in asked if one not in records])
            bench.settle_logs()
            if records:
                break
            bench.now_ms += 10
        began.append(bench.now_ms)
        bench.now_ms += took_ms
        bench._perform(records)
    while not any(isinstance(one.effect, Record) for one in shard.step(bench.now_ms)):
        bench.settle_logs()
        bench.now_ms += 10
    assert began[1] - began[0] == 600
    assert 5_000 <= bench.now_ms - began[1] <= 5_010  # at once, when there is something again


@pytest.mark.parametrize("errors", [[NotApplied("busy")], [NotApplied("busy")] * 3])
def test_what_was_certainly_not_written_is_written_again_as_it_is(serving: Any, errors: list[Exception]) -> None:
    watch = Watch(serving)
    watch.failing = list(errors)
    serving.down = lambda effect: isinstance(effect, Record) and bool(watch.failing)
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.run(3_000)
    assert watch.numbers[: len(errors) + 1] == [watch.numbers[0]] * (len(errors) + 1)
    assert watch.reads == 0
    assert serving.shard.context.journal.unrecorded == 0
    assert watch.at_ms[1] - watch.at_ms[0] == RETRY_FIRST_MS


def test_an_unknown_one_that_is_there_is_not_written_again(serving: Any) -> None:
    watch = Watch(serving)
    watch.failing = [UnknownOutcome("late")]
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.run(3_000)
    assert watch.reads == 1
    assert watch.numbers == sorted(set(watch.numbers))
    assert serving.shard.life is Life.SERVING
    assert serving.progress().last_checkpoint == watch.numbers[-1]


def test_an_unknown_one_that_is_not_there_is_written_again(serving: Any) -> None:
    watch = Watch(serving)
    watch.failing = [UnknownOutcome("late")]
    serving.down = lambda effect: isinstance(effect, Record) and bool(watch.failing)
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.run(3_000)
    assert watch.reads == 1
    assert watch.numbers[:2] == [watch.numbers[0]] * 2
    assert serving.shard.context.journal.unrecorded == 0


@pytest.mark.parametrize("fence", [2, 50])
def test_an_unknown_one_whose_fence_fell_meanwhile_ends_the_reign(serving: Any, fence: int) -> None:
    watch = Watch(serving)
    watch.failing = [UnknownOutcome("late")]
    serving.down = lambda effect: isinstance(effect, Record) and bool(watch.failing)
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.settle()
    serving.read(serving.store.claim(serving.SHARD, fence, "other", -1))
    serving.run(3_000)
    assert (serving.shard.life, serving.shard.reason) == (Life.LOST, "fence refused")
    assert len(watch.numbers) == 1
    assert serving.shard.context.counts.refused == 1


def test_a_fence_handed_out_twice_is_told_apart_by_the_member(serving: Any) -> None:
    """A rebuilt coordinator may give a number again: the stored member tells whose it is."""
    shard = serving.shard
    watch = Watch(serving)
    watch.failing = [UnknownOutcome("late")]
    serving.submit(serving.IDS[0], serving.now_ms)
    shard.context.member = "another with this fence"
    serving.run(3_000)
    assert shard.life is Life.LOST


def test_the_time_of_the_last_record_is_when_it_began(bench: Any) -> None:
    """What counts for stopping is how old the oldest unrecorded mark may be."""
    shard = bench.claim(limits=Limits(checkpoint_ms=250))
    bench.run(1_000)
    bench.submit(bench.IDS[0], bench.now_ms)
    bench.settle()
    watch = Watch(bench)
    bench.run(2_000)
    assert shard.context.recorded_ms == watch.at_ms[-1]


def test_a_shard_that_is_handed_over_records_at_once(bench: Any) -> None:
    shard = bench.claim(limits=Limits(checkpoint_ms=2_000))
    bench.run(3_000)
    bench.submit(bench.IDS[0], bench.now_ms)
    bench.run(100)
    bench.submit(bench.IDS[1], bench.now_ms)
    bench.run(100)
    began_ms = bench.now_ms
    shard.drain()
    bench.settle()
    assert shard.life is Life.RELEASED
    assert bench.now_ms == began_ms
    assert bench.counts() == {bench.IDS[0]: 1, bench.IDS[1]: 1}
    assert not shard.context.journal.dirty()
