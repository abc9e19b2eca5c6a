"""What can be set in each part, and which values exclude each other."""

import pytest
from minutewheel.settings import SettingsError, load

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("flags", "about"),
    [
        ({"worker.renew_ms": 15_001}, "half of hold_ms"),
        ({"dispatcher.checkpoint_ms": 1_001}, "at most checkpoint_relaxed_ms"),
        ({"dispatcher.checkpoint_relaxed_ms": 2_001}, "at most checkpoint_ms_max"),
        ({"dispatcher.checkpoint_ms_max": 30_001}, "at most unrecorded_ms_max"),
        ({"dispatcher.batch_max": 20_001}, "at most read_ahead"),
        ({"limits.headers": 4_000}, "16 bits"),
        ({"retention.due_ms": 3 * 86_400_000}, "worker_outage_ms must be below due_ms"),
        ({"retention.ledger_ms": 7 * 86_400_000}, "due_ms must be below ledger_ms"),
        ({"topics.prefix": "a\n"}, "topics.prefix"),
    ],
)
def test_what_cannot_work_together_is_refused(flags: dict[str, object], about: str) -> None:
    with pytest.raises(SettingsError, match=about):
        load(flags)
