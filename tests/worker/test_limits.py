import pytest
from minutewheel.worker import WorkerLimits

pytestmark = pytest.mark.pure


def test_a_hold_outlasts_a_renewal_that_fails() -> None:
    with pytest.raises(ValueError, match="outlast"):
        WorkerLimits(hold_ms=19_999, renew_ms=10_000)
    assert WorkerLimits(hold_ms=20_000, renew_ms=10_000).hold_ms == 20_000


@pytest.mark.parametrize("name", ["concurrency", "threads", "renew_ms", "poll_ms", "commit_ms"])
def test_what_must_be_positive_is(name: str) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        WorkerLimits(**{name: 0})
