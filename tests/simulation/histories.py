"""How did many histories go?"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from .world import Breach, World

MUST_HAPPEN = ("overlap", "crash", "late writes", "unknown writes")
UNKNOWN = ("done, unknown", "late, unknown", "never, unknown")


class Told(Struct):
    """What happened in all of them, and each breach with its replay."""

    counts: dict[str, int]
    breaches: list[str]


def play(seeds: Iterable[int], *, faulty: bool = True) -> Told:
    """Play them one after the other. A failing assertion of the code itself is a breach too."""
    totals: Counter[str] = Counter()
    breaches: list[str] = []
    for seed in seeds:
        world = World(seed, faulty=faulty)
        try:
            world.run()
        except AssertionError as breach:
            kind = "" if isinstance(breach, Breach) else f"{type(breach).__name__} "
            breaches.append(f"{kind}{breach}; replay with: make simulate SEED={seed}")
        world.ground.close()
        counts = world.counts
        counts["unknown writes"] = sum(counts[name] for name in UNKNOWN)
        totals["histories"] += 1
        totals.update(counts)
        for what in MUST_HAPPEN:
            totals[f"histories with {what}"] += counts[what] > 0
    return Told(dict(totals), breaches)
