"""For each rule a shortest history that holds with it and fails without it."""

import pytest

from .ablations import without
from .scripts import SCRIPTS
from .stage import Stage

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("rule", SCRIPTS)
def test_the_history_holds_with_the_rule(rule: str) -> None:
    SCRIPTS[rule](Stage())


@pytest.mark.parametrize("rule", SCRIPTS)
def test_the_history_fails_without_the_rule(rule: str) -> None:
    with without(rule), pytest.raises(AssertionError):
        SCRIPTS[rule](Stage())
