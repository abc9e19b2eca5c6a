"""Random histories of the real code, with fixed and with fresh seeds, in two processes at once."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from .histories import MUST_HAPPEN, Told
from .world import World

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

PARTS = 6
FIXED = 250
FRESH = 250
FAULTLESS = 100
PROCESSES = 2
ROOT = Path(__file__).parents[2]


def started(*args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.simulation", *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def played(first: int, count: int, *more: str) -> Told:
    share = count // PROCESSES
    starts = range(first, first + count, share)
    running = [started(start, "--histories", min(share, first + count - start), *more) for start in starts]
    said = [process.communicate()[0] for process in running]
    totals: Counter[str] = Counter()
    breaches: list[str] = []
    for part in (msgspec.json.decode(out, type=Told) for out in said):
        totals.update(part.counts)
        breaches += part.breaches
    return Told(totals, breaches)


def show(kind: str, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{kind}:", ", ".join(f"{count:,} {name}" for name, count in sorted(told.counts.items())))


def check(kind: str, first: int, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    told = played(first, count)
    show(f"{kind}, seeds from {first} on", told, capsys)
    assert told.breaches == []
    assert told.counts["histories"] == count
    for what in MUST_HAPPEN:
        assert told.counts[f"histories with {what}"] == count, what


@pytest.mark.parametrize("part", range(PARTS))
def test_histories_of_fixed_seeds_keep_every_promise(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    check("fixed histories", part * FIXED, FIXED, capsys)


@pytest.mark.parametrize("_", range(PARTS))
def test_histories_of_fresh_seeds_keep_every_promise(_: int, capsys: pytest.CaptureFixture[str]) -> None:
    check("fresh histories", 1_000_000 + int.from_bytes(os.urandom(5), "big"), FRESH, capsys)


def test_without_faults_nothing_is_late_and_nothing_comes_twice(capsys: pytest.CaptureFixture[str]) -> None:
    told = played(0, FAULTLESS, "--faultless")
    show("histories without faults", told, capsys)
    assert told.breaches == []
    assert told.counts["histories"] == FAULTLESS
    assert "duplicates" not in told.counts


def test_a_seed_gives_one_history_in_any_process() -> None:
    here = World(7).run().digest()
    assert World(7).run().digest() == here
    out, _ = started(7).communicate()
    assert f"trace {here}" in out
