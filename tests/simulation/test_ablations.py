"""The record has every rule, and says of each what shows it: a script, or a search and why the rule is kept."""

import re
from pathlib import Path

import pytest

from .ablations import RULES
from .scripts import SCRIPTS

pytestmark = pytest.mark.simulation

ROOT = Path(__file__).parents[2]
RECORD = (ROOT / "docs" / "reliability-record.md").read_text()
ROWS = dict(re.findall(r"^\| ([A-Z]) \|(.*)\|$", RECORD, re.MULTILINE))


def test_the_record_has_every_rule_and_what_shows_it() -> None:
    assert sorted(ROWS) == sorted({*RULES, "U"})
    assert sorted(rule for rule, line in ROWS.items() if f"script {rule}" in line) == sorted(SCRIPTS)
    assert all("kept because" in line for rule, line in ROWS.items() if rule not in SCRIPTS)


def test_the_tests_that_the_record_names_are_there() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", RECORD)
    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []
