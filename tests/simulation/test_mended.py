"""Faults that random histories have found in the real code, each as the shortest history that shows it."""

import pytest
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.shard import Life
from minutewheel.store.position import Log
from minutewheel.store.task import DeadLetter

from .ground import START_MS
from .stage import BUCKET, OTHER, PUBLISH, RECEIPT, ROW, SHARD, Stage, writes

pytestmark = pytest.mark.simulation


def test_an_outcome_does_not_take_the_place_of_an_answer_that_is_still_owed() -> None:
    """`a` decided on a cancel and crashed before it said so; `b` meets the outcome first."""
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_500, a)
    stage.unread.add(Log.OUTCOMES)
    stage.end("x", "done")
    cancel = stage.ask("cancel", "x")
    stage.come_to(a, RECEIPT)
    stage.crash(a)
    stage.unread = {Log.SUBMIT}
    b = stage.owner()
    stage.pass_time(1_000, b)
    stage.unread.clear()
    stage.pass_time(1_000, b)
    assert stage.row("x").state == "done"
    assert stage.answers(cancel) == {"too_late"}


def test_a_command_of_the_other_log_does_not_take_the_place_of_an_answer_that_is_still_owed() -> None:
    """`a` decided on a cancel and crashed before it said so; `b` meets a forwarded command first."""
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 60_000)
    stage.pass_time(1_000, a)
    cancel = stage.ask("cancel", "x")
    stage.come_to(a, RECEIPT)
    stage.crash(a)
    stage.unread.add(Log.SUBMIT)
    redrive = stage.ask("redrive", "x", through=OTHER)
    b, other = stage.owner(), stage.owner(OTHER)
    stage.unread.discard(Log.SUBMIT)
    stage.pass_time(1_000, other)
    stage.unread.add(Log.SUBMIT)
    stage.pass_time(1_000, b)
    stage.unread.clear()
    stage.pass_time(2_000, b)
    assert stage.answers(cancel) == {"cancelled"}
    assert stage.answers(redrive) == {"not_dead"}


def test_a_duplicate_that_is_met_again_is_still_a_duplicate() -> None:
    """`a` said so and crashed; `b` meets a replacement through the other log first."""
    stage = Stage()
    a, other = stage.owner(), stage.owner(OTHER)
    stage.submit("x", 60_000, on_conflict="replace")
    stage.pass_time(1_000, a)
    again = stage.submit("x", 60_000, on_conflict="replace")
    stage.come_to(a, RECEIPT).do()
    stage.crash(a)
    assert stage.answers(again) == {"duplicate"}
    moved = stage.submit("x", 30_000, payload=b"2", on_conflict="replace", through=OTHER)
    stage.pass_time(500, other)
    stage.unread.add(Log.SUBMIT)
    b = stage.owner()
    stage.pass_time(1_000, b)
    stage.unread.clear()
    stage.pass_time(40_000, b)
    assert stage.answers(moved) == {"replaced"}
    assert stage.answers(again) == {"duplicate"}
    assert [delivered.due_ms % 60_000 for delivered in stage.deliveries("x")] == [30_000]


def test_an_owner_that_was_deposed_after_its_checkpoint_tells_nothing() -> None:
    """`a` is to say that there is no dead task; until it writes that, there is one, under `b`."""
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_500, a)
    redrive = stage.ask("redrive", "x", due_ms=5_000)
    row = stage.come_to(a, ROW)
    stage.unread.add(Log.SUBMIT)
    stage.end("x", "failed", retryable=False)
    b = stage.owner()
    stage.pass_time(1_000, b)
    assert stage.row("x").state == "dead"
    row.do()
    row.tell()
    stage.pass_time(1_000, a)
    stage.unread.clear()
    stage.pass_time(6_000, b)
    assert stage.answers(redrive) == {"redriven"}
    assert stage.runs("x") == 2


def dead(stage: Stage) -> None:
    """`x` is dead and has its letter."""
    a = stage.owner()
    stage.submit("x", 500)
    stage.pass_time(1_500, a)
    stage.end("x", "failed", retryable=False)
    stage.pass_time(1_500, a)
    stage.crash(a)
    assert (stage.row("x").state, stage.letters("x")) == ("dead", 1)


@pytest.mark.parametrize("at", [BUCKET, ROW, writes(DeadLetter), RECEIPT])
def test_a_redrive_is_never_left_without_its_letter(at: object) -> None:
    stage = Stage()
    dead(stage)
    a = stage.owner()
    redrive = stage.ask("redrive", "x", due_ms=3_000)
    stage.come_to(a, at)  # type: ignore[arg-type]
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(6_000, b)
    assert stage.answers(redrive) == {"redriven"}
    assert stage.runs("x") == 2
    assert stage.letters("x") == 0


@pytest.mark.parametrize("at", [ROW, writes(DeadLetter), RECEIPT])
def test_a_letter_that_is_discarded_stays_so(at: object) -> None:
    stage = Stage()
    dead(stage)
    a = stage.owner()
    discard = stage.ask("discard", "x")
    stage.come_to(a, at)  # type: ignore[arg-type]
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(3_000, b)
    assert stage.answers(discard) == {"discarded"}
    assert stage.letters("x") == 0


def test_no_row_stands_in_a_piece_that_nobody_knows_of() -> None:
    """`a` opens a second piece and crashes; whoever drops the bucket must know of it."""
    stage = Stage(Limits(piece_rows_max=1))
    a = stage.owner()
    stage.submit("x", 10_000)
    stage.pass_time(1_000, a)
    stage.submit("y", 10_000)
    stage.come_to(a, ROW)
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(70_000, b)
    assert (stage.runs("x"), stage.runs("y")) == (1, 1)
    assert stage.ground.progress(SHARD).open_minute > stage.now_ms // 60_000 - 1
    assert stage.ground.bucket_rows(SHARD, stage.now_ms) == 0


def test_a_clock_that_is_set_back_delays_no_checkpoint() -> None:
    stage = Stage(Limits(unrecorded_max=1))
    a = stage.owner()
    a.clock.skew_ms = 90_000
    stage.pass_time(1_000, a)
    stage.submit("x", 3_000)
    stage.pass_time(1_000, a)
    a.clock.skew_ms = 0
    stage.submit("y", 3_000)
    stage.submit("z", 4_000)
    stage.pass_time(3_000, a)
    assert [stage.runs(name) for name in ("x", "y", "z")] == [1, 1, 1]


def test_a_clock_that_is_set_back_delays_no_firing() -> None:
    """A clock far ahead stops firing till progress is recorded again; when to look again was a time of that clock."""
    stage = Stage(Limits(unrecorded_ms_max=5_000))
    a = stage.owner()
    stage.submit("x", 1_000)
    stage.pass_time(1_200, a)
    a.clock.skew_ms = 90_000
    stage.pass_time(20, a)
    a.clock.skew_ms = 0
    stage.pass_time(2_000, a)
    stage.submit("y", 8_000)
    stage.pass_time(START_MS + 7_990 - stage.now_ms, a)
    (shard,) = a.shards.values()
    next_ms = shard.next_ms()
    assert next_ms is not None
    assert next_ms <= START_MS + 8_000


# What else DESIGN.md promises of a shard.


def test_a_hand_over_records_what_was_fired_and_what_waits_goes_out_once() -> None:
    stage = Stage()
    a = stage.owner()
    for name in ("x", "y"):
        stage.submit(name, 1_000 if name == "x" else 3_000)
    stage.pass_time(1_200, a)
    (shard,) = a.shards.values()
    shard.drain()
    stage.pass_time(1_000, a)
    assert shard.life is Life.RELEASED
    assert stage.ground.holder(SHARD) is None
    b = stage.owner()
    stage.pass_time(2_000, b)
    assert len(stage.published) == 2
    assert (stage.runs("x"), stage.runs("y")) == (1, 1)


def test_a_hand_over_waits_for_what_is_in_flight() -> None:
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 1_000)
    publishing = stage.come_to(a, PUBLISH)
    (shard,) = a.shards.values()
    shard.drain()
    stage.pass_time(1_000, a)
    assert shard.life is Life.DRAINING
    publishing.do()
    publishing.tell()
    stage.pass_time(1_000, a)
    assert shard.life is Life.RELEASED
    b = stage.owner()
    stage.pass_time(2_000, b)
    assert len(stage.published) == 1


def test_a_command_that_is_forwarded_twice_is_decided_once() -> None:
    """The owner of the wrong shard crashes between forwarding a cancel and storing its offset."""
    stage = Stage()
    a, other = stage.owner(), stage.owner(OTHER)
    stage.submit("x", 30_000)
    stage.pass_time(1_000, a)
    first = stage.ask("cancel", "x", through=OTHER)
    stage.come_to(other, RECEIPT).do()
    stage.crash(other)
    stage.pass_time(1_000, a)
    stage.submit("x", 20_000, on_conflict="replace")
    stage.pass_time(1_000, a)
    other = stage.owner(OTHER)
    stage.pass_time(1_000, other)
    stage.pass_time(20_000, a)
    assert stage.answers(first) == {"cancelled"}
    assert stage.runs("x") == 1


def test_beyond_the_memory_limit_nothing_is_lost_and_what_is_due_first_goes_first() -> None:
    stage = Stage(tasks_max=3)
    a = stage.owner()
    for number in range(12):
        stage.submit(f"x{number}-", 20_000 - 1_000 * number)
        stage.pass_time(250, a)
    stage.pass_time(22_000, a)
    assert [delivered.due_ms % 60_000 for delivered in stage.published] == list(range(9_000, 21_000, 1_000))
    dues = [delivered.due_ms for delivered in stage.published]
    late_ms = [at_ms - due_ms for at_ms, due_ms in zip(stage.published_ms, dues, strict=True)]
    assert max(late_ms) < 500


def test_a_clock_that_is_ahead_fires_early_by_the_world_and_nothing_twice() -> None:
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 5_000)
    stage.pass_time(1_000, a)
    a.clock.skew_ms = 10_000
    stage.pass_time(500, a)
    assert stage.runs("x") == 1
    a.clock.skew_ms = -10_000
    stage.pass_time(20_000, a)
    assert len(stage.published) == 1


def test_a_lease_that_could_not_be_released_is_released_later() -> None:
    """A cut at the moment of the release must not leave the shard with a member that does not run it."""
    stage = Stage()
    a = stage.owner()
    stage.pass_time(1_000, a)
    a.line.cut(stage.now_ms + 2_000)
    next(iter(a.shards.values())).drain()
    stage.pass_time(1_000, a)
    assert (a.shards, a.unreleased, stage.ground.holder(SHARD)) == ({}, {SHARD}, a.name)
    stage.pass_time(2_000, a)
    a.release_rest()
    assert stage.ground.holder(SHARD) is None
