"""Each rule of the shard, switched off alone, breaks a history that holds with it: docs/reliability-record.md."""

import re
from pathlib import Path

import pytest

from .ablations import RULES, fails, without

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(300)]

RECORD = (Path(__file__).parents[2] / "docs" / "reliability-record.md").read_text()
ROWS = dict(re.findall(r"^\| ([A-Z]) \|(.*)\|$", RECORD, re.MULTILINE))
PINNED = {rule: int(seed[1]) for rule, line in ROWS.items() if (seed := re.search(r"seed (\d+)", line))}


def test_the_record_has_every_rule() -> None:
    assert sorted(ROWS) == sorted({*RULES, "U", "X"})
    for rule, line in ROWS.items():
        assert rule in PINNED or "kept because" in line, rule


@pytest.mark.parametrize("rule", sorted(PINNED))
def test_a_history_fails_without_the_rule_and_holds_with_it(rule: str) -> None:
    seed = PINNED[rule]
    assert fails(seed) is None
    with without(rule):
        assert fails(seed) is not None
