"""When a minute is over for good, and how that is proven."""

from typing import Any

import pytest
from minutewheel.dispatcher.activity import Asked
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.effects import Drop, PutClosing, ReadPage, Record
from minutewheel.dispatcher.shard import Life
from minutewheel.store.position import write_timestamp
from minutewheel.store.progress import mix
from minutewheel.store.record import unpack
from minutewheel.store.task import BucketRow

pytestmark = pytest.mark.pure

MINUTE_MS = 60_000


@pytest.fixture
def serving(bench: Any) -> Any:
    bench.claim()
    bench.run(1_000)
    return bench


def minute_of(bench: Any) -> int:
    return int(bench.START_MS // MINUTE_MS)


def closed(bench: Any) -> int:
    return int(bench.progress().open_minute - minute_of(bench))


def page(bench: Any, minute: int) -> list[BucketRow]:
    return list(bench.read(bench.store.page(bench.SHARD, minute, 0, (-1, -1), 99)))


def test_minutes_close_soon_after_they_are_over_and_their_buckets_are_dropped(serving: Any) -> None:
    serving.submit_many({serving.IDS[n]: serving.START_MS + 5_000 * n for n in range(24)})
    serving.produce(serving.composer.cancel("default", serving.IDS[3]))
    serving.run(40_000)
    serving.now_ms = serving.START_MS + MINUTE_MS + 1_900
    serving.settle()
    assert closed(serving) == 0
    serving.run(3_000)
    assert closed(serving) == 1
    minute = minute_of(serving)
    closing = serving.read(serving.store.closing(serving.SHARD, minute))
    assert (closing.rows, closing.fired, closing.removed) == (12, 11, 1)
    assert page(serving, minute) == []
    assert len(page(serving, minute + 1)) == 12
    assert serving.progress().dropped_minute == minute


def test_a_closing_record_proves_which_filings_there_were(serving: Any) -> None:
    serving.submit_many({serving.IDS[n]: serving.now_ms for n in range(5)})
    serving.run(100_000)
    digest = 0
    for delivered in serving.delivered():
        digest ^= mix(delivered.filing)
    assert serving.read(serving.store.closing(serving.SHARD, minute_of(serving))).digest == digest


def test_lateness_is_counted_beyond_a_second(serving: Any) -> None:
    serving.submit_many({serving.IDS[0]: serving.now_ms, serving.IDS[1]: serving.now_ms - 1_500})
    serving.run(100_000)
    assert serving.read(serving.store.closing(serving.SHARD, minute_of(serving))).late == 1


def test_a_minute_with_a_held_task_stays_open_and_only_that(serving: Any) -> None:
    serving.gate.hold("mail", "paused", serving.now_ms)
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.run(5 * MINUTE_MS)
    progress = serving.progress()
    assert closed(serving) == 0
    assert progress.closed >= {minute_of(serving) + n for n in range(1, 4)}
    serving.gate.resume("mail", serving.now_ms)
    serving.run(3_000)
    assert closed(serving) >= 5
    assert serving.progress().closed == set()
    assert serving.progress().dropped_minute == serving.progress().open_minute - 1


def test_a_minute_with_a_task_in_flight_stays_open(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.settle(publish=False)
    dues = serving.gate.release(serving.now_ms, 9)
    serving.shard.released(dues)
    serving.run(2 * MINUTE_MS, publish=False)
    assert closed(serving) == 0
    serving.shard.fired(dues, serving.now_ms)
    serving.run(2_000)
    assert closed(serving) >= 1


def test_nothing_closes_while_the_clock_is_not_confirmed(serving: Any) -> None:
    serving.shard.clock_confirmed = False
    serving.run(5 * MINUTE_MS)
    assert closed(serving) == 0
    serving.shard.clock_confirmed = True
    serving.run(3_000)
    assert closed(serving) >= 4


def test_rule_q_nothing_closes_before_the_logs_are_applied_as_far_as_they_went_at_the_claim(bench: Any) -> None:
    bench.submit(bench.IDS[0], bench.now_ms + MINUTE_MS * 60)
    bench.now_ms += 5 * MINUTE_MS
    bench.claim()
    bench._read = lambda _: False
    bench.run(10_000)
    assert bench.shard.life is Life.CATCHING_UP
    assert closed(bench) == 0
    del bench._read
    bench.run(5_000)
    assert bench.shard.life is Life.SERVING
    assert closed(bench) >= 4


def test_rule_y_nothing_closes_before_what_filed_in_it_is_recorded_as_applied(serving: Any) -> None:
    """A receipt that can't be sent keeps the offset, and so the minute."""
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.down = lambda effect: type(effect).__name__ == "Produce"
    serving.run(3 * MINUTE_MS)
    assert len(serving.delivered()) == 1
    assert closed(serving) == 0
    serving.down = lambda _: False
    serving.run(8_000)
    assert closed(serving) >= 2


def test_rule_c_a_remainder_is_fired_and_counted_and_the_minute_closes_after_it(serving: Any) -> None:
    """A row that counts and that nobody fired: there is none in a system without faults."""
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.settle()
    serving.run(1_000)
    (row,) = page(serving, minute_of(serving))
    stray = row.filing - (1 << 14)  # as if of an earlier record, long applied
    rows = [BucketRow(row.minute, 0, row.due_ms, stray, row.record)]
    serving.read(serving.store.write(serving.SHARD, write_timestamp(1, 1_000), rows))
    serving.shard.context.intake._mine.add(stray)
    serving.run(2 * MINUTE_MS)
    assert serving.shard.context.counts.remainders == 1
    assert {delivered.filing for delivered in serving.delivered()} == {row.filing, stray}
    assert closed(serving) >= 1
    assert serving.read(serving.store.closing(serving.SHARD, minute_of(serving))).fired == 2


def test_a_row_of_a_stale_owner_s_other_decision_neither_fires_nor_keeps_the_minute(serving: Any) -> None:
    """Rule V: its reign has not recorded the record that made it."""
    serving.submit(serving.IDS[0], serving.now_ms + 80_000)
    serving.run(1_000)
    minute = minute_of(serving) + 1
    (row,) = page(serving, minute)
    assert unpack(row.record).fence == 1
    stale = BucketRow(minute, 0, row.due_ms, row.filing + (1 << 20), row.record)
    serving.shard.drain()
    serving.settle()
    serving.read(serving.store.write(serving.SHARD, write_timestamp(1, 9_000), [stale]))
    serving.claim()
    serving.run(4 * MINUTE_MS)
    assert [delivered.filing for delivered in serving.delivered()] == [row.filing]
    assert closed(serving) >= 3
    assert serving.shard.context.counts.remainders == 0


def test_one_look_closes_so_many_minutes_at_the_most(bench: Any) -> None:
    bench.now_ms += 500 * MINUTE_MS
    bench.claim(limits=Limits(closes_max=60))
    sizes: list[int] = []

    def note(asked: Asked, answer: Any) -> Any:
        if isinstance(asked.effect, Record):
            sizes.append(len(asked.effect.checkpoint.closed))
        return answer

    bench.answers = note
    bench.run(60_000)
    assert 50 <= max(sizes) <= 60
    assert closed(bench) >= 499


def test_a_successor_puts_away_what_its_predecessor_closed_and_did_not_drop(serving: Any) -> None:
    minute = minute_of(serving) + 1
    serving.submit(serving.IDS[0], minute * MINUTE_MS)
    serving.run(MINUTE_MS + 10_000)
    serving.down = lambda effect: isinstance(effect, Drop | PutClosing)
    serving.run(2 * MINUTE_MS)
    assert closed(serving) >= 2
    assert len(page(serving, minute)) == 1
    serving.shard.lose("killed")
    serving.down = lambda _: False
    serving.claim()
    serving.run(20_000)
    assert page(serving, minute) == []
    assert serving.progress().dropped_minute >= minute
    assert len(serving.delivered()) == 1


def test_the_proof_is_read_from_the_store_after_all_is_quiet(serving: Any) -> None:
    serving.submit(serving.IDS[0], serving.now_ms)
    serving.run(5_000)
    reads: list[int] = []
    serving.answers = lambda asked, answer: (
        (reads.append(asked.effect.minute) if isinstance(asked.effect, ReadPage) else None) or answer
    )
    serving.run(MINUTE_MS)
    assert reads.count(minute_of(serving)) == 1
