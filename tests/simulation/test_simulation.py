"""Random histories of the real code, by fixed seeds. What is open with others: docs/reliability-record.md."""

from collections import Counter

import pytest

from tests.simulation.world import Breach, World

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(2_400)]

HISTORIES = 5
FAULTLESS = 5
MUST_HAPPEN = ("overlap", "crash", "late writes")
UNKNOWN = ("done, unknown", "late, unknown", "never, unknown")


def play(seeds: range, *, faulty: bool = True) -> tuple[Counter[str], list[str]]:
    """Play these histories: what happened in them in all, and the breaches."""
    totals: Counter[str] = Counter()
    breaches = []
    for seed in seeds:
        world = World(seed, faulty=faulty)
        try:
            world.run()
        except Breach as breach:
            breaches.append(f"{breach}; replay with: make simulate SEED={seed}")
        totals["histories"] += 1
        totals.update(world.counts)
        if faulty:
            happened = [name for name in MUST_HAPPEN if world.counts[name]]
            unknown = any(world.counts[name] for name in UNKNOWN)
            totals["histories with every fault"] += len(happened) == len(MUST_HAPPEN) and unknown
    return totals, breaches


def tell(kind: str, totals: Counter[str]) -> None:
    print(f"\n{kind}:", ", ".join(f"{count:,} {name}" for name, count in sorted(totals.items())))


def test_fixed_histories_keep_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    totals, breaches = play(range(HISTORIES))
    with capsys.disabled():
        tell("fixed seeds", totals)
    assert breaches == []
    assert totals["histories"] == HISTORIES


def test_histories_without_faults_have_nothing_late_and_nothing_twice() -> None:
    totals, breaches = play(range(FAULTLESS), faulty=False)
    assert breaches == []
    assert not totals["duplicates"]


def test_a_seed_gives_one_history() -> None:
    digests = []
    for _ in range(2):
        world = World(7)
        world.run()
        digests.append(world.digest())
    assert digests[0] == digests[1]
