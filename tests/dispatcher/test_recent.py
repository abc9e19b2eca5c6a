"""What stands among the rows that a reign wrote last: against a plain list of all that was ever written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.dispatcher.recent import Recent
from minutewheel.store.task import TaskRow

pytestmark = pytest.mark.pure

ROWS_MAX = 3
KEYS = st.sampled_from([f"default/{n}" for n in range(6)])
STATES = st.sampled_from(["scheduled", "scheduled", "done", "dead", "cancelled", "expired"])


def row(key: str, state: Any, filing: int = 1) -> TaskRow:
    return TaskRow(key, filing, filing, 1, 60_000, state, 1, "mail", b"")


@given(st.lists(st.lists(st.tuples(KEYS, STATES), max_size=4), max_size=30))
def test_the_last_write_of_a_key_stands_or_nothing_does(writes: list[list[tuple[str, Any]]]) -> None:
    recent, written, all_fit = Recent(ROWS_MAX), dict[str, TaskRow](), True
    for filing, some in enumerate(writes):
        rows = [row(key, state, filing) for key, state in dict(some).items()]
        recent.written(rows)
        for one in rows:
            written.pop(one.key, None)
            written[one.key] = one
        live = [one for one in written.values() if one.state == "scheduled"]
        found = recent.rows(written)
        assert len(recent) == len(found) <= ROWS_MAX
        assert all(one is written[one.key] and one.state == "scheduled" for one in found)
        assert not rows or [one for one in rows if one.state == "scheduled"][-ROWS_MAX:] == [
            one for one in found if one.filing == filing
        ], "what came last is never the first to leave"
        all_fit &= len(live) <= ROWS_MAX
        assert not all_fit or found == live


def test_a_key_that_was_never_written_is_not_known() -> None:
    recent = Recent()
    recent.written([row("default/a", "scheduled")])
    assert recent.rows(["default/b", "default/a"]) == [row("default/a", "scheduled")]
