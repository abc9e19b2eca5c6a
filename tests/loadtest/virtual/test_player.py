"""Do shards that are played come through a hand-over with nothing lost, whatever the turn?"""

import pytest
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.shard import Life
from minutewheel.loadtest.profile import NINE, Profile
from minutewheel.loadtest.virtual.accounts import Tally
from minutewheel.loadtest.virtual.player import Player, Track
from minutewheel.store.task import MINUTE_MS

pytestmark = pytest.mark.volume

MIDNIGHT_MS = 29_846_880 * MINUTE_MS
TAIL_MS = 40 * MINUTE_MS


@pytest.mark.parametrize("turn_ms", [20, 100, 700])
def test_two_owners_in_turn_fire_each_task_of_four_shards_once(turn_ms: int) -> None:
    profile = Profile("cancel-heavy", 50_000_000, 4, MIDNIGHT_MS, range(NINE, NINE + 3))
    tracks = [Track(profile, shard) for shard in range(4)]
    first = Player(tracks, profile.start_ms, turn_ms, Limits())
    first.play(profile.start_ms + 100_000)
    first.hand_over()
    assert {shard.life for shard in first.shards.values()} == {Life.RELEASED}
    second = Player(tracks, first.now_ms, turn_ms, Limits())
    second.play(profile.end_ms + TAIL_MS)
    tally = Tally()
    for track in tracks:
        assert track.accounts.waiting() == 0
        for minute in track.accounts.closed.values():
            tally.add(minute)
    assert tally.proven
    assert tally.submitted == sum(profile.of_shard(shard, NINE + n) for shard in range(4) for n in range(3))
    assert tally.fired == first.fired + second.fired == sum((first.late_ms + second.late_ms).values())
    assert min(first.late_ms + second.late_ms) >= turn_ms, "a turn to acknowledge, and never early"
    assert tally.cancelled > 0.15 * tally.submitted
