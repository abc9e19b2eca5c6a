"""What is told of a batch, after which checkpoint, and when its records count as applied."""

from typing import Any

import pytest
from minutewheel.dispatcher.effects import Produce, Record
from minutewheel.dispatcher.shard import Life
from minutewheel.store.position import pack_position

pytestmark = pytest.mark.pure

HOUR_MS = 3_600_000


@pytest.fixture
def serving(bench: Any) -> Any:
    bench.claim()
    bench.run(1_000)
    return bench


def test_a_receipt_waits_for_a_checkpoint_after_the_rows_but_the_next_batch_does_not_wait_for_it(serving: Any) -> None:
    serving.down = lambda effect: isinstance(effect, Record)
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.run(500)
    serving.submit(serving.IDS[1], serving.now_ms + HOUR_MS)
    serving.run(500)
    assert serving.row(serving.IDS[1]).state == "scheduled"
    assert serving.said() == []
    serving.down = lambda _: False
    serving.run(10_000)
    assert serving.said() == ["accepted", "accepted"]
    assert serving.progress().offsets[0] == pack_position(1, 2)


def test_the_next_command_of_a_key_waits_for_the_receipt_of_the_one_before(serving: Any) -> None:
    """Rule U."""
    serving.down = lambda effect: isinstance(effect, Produce)
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.produce(serving.composer.cancel("default", serving.IDS[0], receipt="r"))
    serving.run(2_000)
    assert serving.row(serving.IDS[0]).state == "scheduled"
    serving.down = lambda _: False
    serving.run(10_000)
    assert serving.said() == ["accepted", "cancelled"]


def test_no_offset_passes_a_record_whose_receipt_is_owed(serving: Any) -> None:
    """Rule O."""
    serving.down = lambda effect: isinstance(effect, Produce)
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.run(2_000)
    assert serving.progress().offsets[0] == pack_position(1, 0)


def test_a_shard_is_handed_over_only_when_all_is_told(serving: Any) -> None:
    serving.down = lambda effect: isinstance(effect, Produce)
    serving.submit(serving.IDS[0], serving.now_ms + HOUR_MS)
    serving.run(1_000)
    serving.shard.drain()
    serving.run(2_000)
    assert serving.shard.life is Life.DRAINING
    serving.down = lambda _: False
    serving.run(10_000)
    assert serving.shard.life is Life.RELEASED
    assert serving.said() == ["accepted"]
    assert serving.progress().offsets[0] == pack_position(1, 1)
