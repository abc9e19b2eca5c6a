"""What kind of history is it? Limits and faults, drawn from its seed before it begins."""

from random import Random

from minutewheel.dispatcher.context import Limits
from msgspec import Struct

DEED_FATES = ("not done", "done, unknown", "late, unknown", "never, unknown", "torn")


class Plan(Struct, kw_only=True):
    """One history. Rates are probabilities a deed, a delivery or a step; times are virtual."""

    shards: int = 2
    keys_a_shard: int = 4
    members: int = 2
    limits: Limits
    tasks_max: int = 1_000
    chunk: int = 5
    session_ms: int = 10_000
    chaos_ms: int = 200_000
    acts: int = 40
    faulty: bool = True
    deed_rate: float = 0.05
    step_rate: float = 0.01
    strike_rate: float = 0.05
    clocks: bool = False
    slow: float = 0.05


def draw_plan(random: Random, *, faulty: bool = True) -> Plan:
    """Small limits make the rare paths frequent."""
    tasks_max = random.choice([2, 4, 1_000, 1_000])  # less than a page of each piece would not keep their order
    batch_max = random.choice([1, 2, 4, 100])
    limits = Limits(
        batch_max=batch_max,
        read_ahead=random.choice([2, 8, 100]),
        page_rows=random.choice([1, 2, 3, 100]),
        piece_rows_max=random.choice([1, 2, 1_000, 1_000]) if tasks_max > 10 else 1_000,
        lead_ms=random.choice([5_000, 30_000]),
        checkpoint_ms=random.choice([250, 1_000, 3_000] if batch_max > 2 else [250, 1_000]),
        checkpoint_relaxed_ms=random.choice([1_000, 4_000]),
        checkpoint_ms_max=4_000,
        unrecorded_max=random.choice([2, 1_000, 1_000]),
        unrecorded_ms_max=30_000,
        close_after_ms=2_000,
        close_look_ms=random.choice([2_000, 6_000]),
        closes_max=random.choice([1, 60]),
    )
    return Plan(
        shards=random.choice([1, 1, 2, 3]) if tasks_max > 10 else 1,
        keys_a_shard=random.choice([2, 4]),
        members=random.choice([2, 2, 3]),
        limits=limits,
        tasks_max=tasks_max,
        chunk=random.choice([1, 2, 50]),
        acts=random.choice([15, 25, 40]),
        chaos_ms=random.choice([50_000, 75_000, 110_000]),
        faulty=faulty,
        deed_rate=random.choice([0.02, 0.05, 0.12]) if faulty else 0.0,
        step_rate=random.choice([0.003, 0.01, 0.02]) if faulty else 0.0,
        strike_rate=random.choice([0.0, 0.05, 0.15]) if faulty else 0.0,
        clocks=faulty and random.random() < 0.3,
        slow=random.choice([0.02, 0.1]) if faulty else 0.0,
    )
