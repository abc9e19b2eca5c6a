"""What the activities of one shard share."""

from typing import Any

import pytest

pytestmark = pytest.mark.pure


@pytest.fixture
def context(bench: Any) -> Any:
    bench.claim()
    bench.settle()
    return bench.shard.context


def test_a_minute_is_quiet_when_it_is_loaded_empty_and_nothing_is_filed_into_it(bench: Any, context: Any) -> None:
    minute = bench.START_MS // 60_000
    assert context.quiet(minute)
    assert not context.quiet(minute + 500)  # not read yet
    context.begin_filing(minute)
    context.begin_filing(minute)
    context.filed(minute)
    assert not context.quiet(minute)
    context.filed(minute)
    assert context.quiet(minute)
    bench.submit(bench.IDS[0], bench.now_ms + 5_000)
    bench.run(1_000)
    assert not context.quiet(minute)
    bench.run(5_000)
    assert context.quiet(minute)


def test_a_forgotten_minute_is_not_quiet(bench: Any, context: Any) -> None:
    minute = bench.START_MS // 60_000
    context.memory.forget(minute, (0, 0))
    assert not context.quiet(minute)


def test_waiting_for_a_checkpoint_means_one_that_begins_from_now_on(context: Any) -> None:
    """One that is under way may have been built before: it proves nothing of what was read since."""
    journal = context.journal
    under_way = journal.build([])
    waiting = context.checkpointed()
    until = next(waiting)
    assert journal.wanted
    journal.recorded(under_way)
    assert not until.holds()
    journal.recorded(journal.build([]))
    assert until.holds()
    with pytest.raises(StopIteration):
        next(waiting)


def test_the_time_is_that_of_the_step_being_taken(bench: Any, context: Any) -> None:
    bench.shard.step(bench.now_ms + 7)
    assert context.now_ms == bench.now_ms + 7
