"""How the filings of a minute come into memory before they are due."""

from typing import Any

import pytest
from minutewheel.dispatcher.activity import Asked
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.effects import ReadMarks, ReadPage
from minutewheel.dispatcher.memory import Budget

pytestmark = pytest.mark.pure

MINUTE_MS = 60_000


class Watch:
    """What was read, and when."""

    def __init__(self, bench: Any) -> None:
        self.pages: list[tuple[int, int]] = []
        self.marks: list[int] = []
        self._bench = bench
        bench.answers = self.note

    def note(self, asked: Asked, answer: Any) -> Any:
        effect, minute = asked.effect, self._bench.START_MS // MINUTE_MS
        if asked.activity == "load":
            if isinstance(effect, ReadPage):
                self.pages.append((self._bench.now_ms - self._bench.START_MS, effect.minute - minute))
            if isinstance(effect, ReadMarks):
                self.marks.append(effect.minute - minute)
        return answer


def filed(bench: Any, dues: dict[str, int]) -> None:
    """File these under one reign and hand it over."""
    bench.claim()
    bench.submit_many(dues)
    bench.run(1_000)
    bench.shard.drain()
    bench.settle()


def test_a_minute_is_loaded_its_lead_before_it_begins(bench: Any) -> None:
    watch = Watch(bench)
    bench.claim(limits=Limits(lead_ms=30_000))
    bench.run(3 * MINUTE_MS)
    assert watch.pages == [(0, 0), (30_000, 1), (90_000, 2), (150_000, 3)]


def test_after_a_claim_what_is_due_now_is_loaded_first_then_the_overdue_minutes(bench: Any) -> None:
    bench.now_ms += 4 * MINUTE_MS + 40_000
    watch = Watch(bench)
    bench.claim()
    bench.run(2_000)
    assert [minute for _, minute in watch.pages] == [4, 5, 0, 1, 2, 3]


def test_the_marks_of_minutes_that_did_not_come_with_the_claim_are_read_first(bench: Any) -> None:
    watch = Watch(bench)
    bench.claim()
    bench.run(5 * MINUTE_MS)
    assert watch.marks == [3, 4, 5]


def test_what_is_marked_is_not_loaded(bench: Any) -> None:
    due_ms = bench.START_MS + 5 * MINUTE_MS
    bench.claim()
    for n in range(4):
        bench.submit(bench.IDS[n], due_ms)
    bench.run(1_000)
    bench.produce(bench.composer.cancel("default", bench.IDS[2]))
    bench.run(1_000)
    bench.shard.drain()
    bench.settle()
    bench.claim()
    bench.run(4 * MINUTE_MS + 45_000)
    assert bench.budget.tasks == 3
    bench.run(20_000)
    assert bench.counts() == dict.fromkeys((bench.IDS[0], bench.IDS[1], bench.IDS[3]), 1)


def test_a_large_minute_is_read_in_pages_each_once(bench: Any) -> None:
    dues = {bench.IDS[n]: bench.START_MS + 2 * MINUTE_MS + n % 9 for n in range(25)}
    filed(bench, dues)
    watch = Watch(bench)
    bench.claim(limits=Limits(page_rows=10))
    bench.run(2 * MINUTE_MS)
    assert [minute for _, minute in watch.pages].count(2) == 3
    bench.run(1_000)
    assert bench.counts() == dict.fromkeys(dues, 1)


def test_a_filing_made_while_its_minute_is_read_is_there_once(bench: Any) -> None:
    """Rule L: the reach moves before the read, so it is remembered whichever comes first."""
    dues = {bench.IDS[n]: bench.START_MS + 2 * MINUTE_MS + n for n in range(25)}
    filed(bench, dues)
    late = iter(bench.IDS[25:])

    def meanwhile(asked: Asked, answer: Any) -> Any:
        if asked.activity == "load" and isinstance(asked.effect, ReadPage) and asked.effect.minute == minute:
            assert bench.shard.context.memory.reach >= minute
            task_id = next(late)
            dues[task_id] = bench.START_MS + 2 * MINUTE_MS + 12
            bench.submit(task_id, dues[task_id])
            bench._read(0)
            bench._perform(bench.shard.step(bench.now_ms))
        return answer

    minute = bench.START_MS // MINUTE_MS + 2
    bench.claim(limits=Limits(page_rows=10))
    bench.answers = meanwhile
    bench.run(3 * MINUTE_MS)
    assert len(dues) == 28
    assert bench.counts() == dict.fromkeys(dues, 1)


def test_a_filing_in_a_forgotten_minute_goes_to_the_store_and_is_read_with_it(bench: Any) -> None:
    dues = {bench.IDS[n]: bench.START_MS + 2 * MINUTE_MS for n in range(60)}
    filed(bench, dues)
    bench.claim(limits=Limits(page_rows=10), budget=Budget(tasks_max=20))
    bench.gate.hold("mail", "paused", bench.now_ms)
    bench.run(3 * MINUTE_MS)
    minute = bench.START_MS // MINUTE_MS + 2
    assert minute in bench.shard.context.memory.forgotten
    assert bench.budget.tasks <= 30
    bench.submit(bench.IDS[60], dues[bench.IDS[0]])
    bench.run(1_000)
    held = bench.budget.tasks
    row = bench.row(bench.IDS[60])
    assert row.minute in bench.shard.context.memory.forgotten  # the budget is used up, so the store alone has it
    assert held <= 31
    bench.gate.resume("mail", bench.now_ms)
    bench.run(10_000)
    assert bench.counts() == dict.fromkeys([*dues, bench.IDS[60]], 1)


def test_an_urgent_minute_is_loaded_before_the_rest_of_a_forgotten_one(bench: Any) -> None:
    """Where one minute overfills memory and the queue is held, the next minute's first page still comes."""
    dues = {bench.IDS[n]: bench.START_MS + 2 * MINUTE_MS + n for n in range(60)}
    filed(bench, dues)
    bench.claim(limits=Limits(page_rows=10), budget=Budget(tasks_max=30))
    watch = Watch(bench)
    bench.run(2 * MINUTE_MS + 30_000)
    assert bench.counts() == dict.fromkeys(dues, 1)
    first_of_next = next(at for at, minute in watch.pages if minute == 3)
    assert first_of_next == 2 * MINUTE_MS + 30_000


def test_minutes_that_are_shut_are_passed_without_reading(bench: Any) -> None:
    bench.claim()
    bench.gate.hold("mail", "paused", bench.now_ms)
    bench.submit(bench.IDS[0], bench.now_ms)
    bench.run(5 * MINUTE_MS)
    bench.shard.drain()
    bench.settle()
    watch = Watch(bench)
    bench.claim()
    bench.run(1_000)
    assert sorted({minute for _, minute in watch.pages}) == [0, 4, 5]


def test_where_a_predecessor_has_shut_the_present_minute_what_is_due_now_is_not_late(bench: Any) -> None:
    bench.now_ms = bench.START_MS - 30_000  # the first open minute begins in half a minute
    bench.claim(limits=Limits(lead_ms=5_000))
    bench.run(1_000)
    bench.submit(bench.IDS[0], bench.now_ms + 100)
    bench.run(1_000)
    assert bench.counts() == {bench.IDS[0]: 1}


def test_an_earlier_forgotten_minute_goes_before_the_rest_of_one_that_waits_for_room(bench: Any) -> None:
    """Memory was full when the early one was filed; the later minute, being read, must not hold the room it needs."""
    at_ms = bench.START_MS + 2 * MINUTE_MS
    dues = {bench.IDS[n]: at_ms + 50_000 + n for n in range(20)}
    filed(bench, dues)
    bench.claim(limits=Limits(page_rows=10, lead_ms=30_000), budget=Budget(tasks_max=2))
    bench.run(MINUTE_MS)
    early = {bench.IDS[20 + n]: at_ms - 20_000 + n for n in range(3)}
    bench.submit_many(early)
    bench.run(1_000)
    memory = bench.shard.context.memory
    assert at_ms // MINUTE_MS - 1 in memory.forgotten
    bench.run(39_500)
    assert bench.counts() == dict.fromkeys(early, 1)
