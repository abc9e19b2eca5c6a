import pytest
from minutewheel.worker.errors import DELAY_LIMIT_MS, Reject, Retry, Snooze

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("kind", [Retry, Snooze])
def test_a_delay_is_between_now_and_a_year(kind: type[Retry | Snooze]) -> None:
    assert kind(after_ms=0).after_ms == 0
    assert kind(after_ms=DELAY_LIMIT_MS).after_ms == DELAY_LIMIT_MS
    for wrong in (-1, DELAY_LIMIT_MS + 1):
        with pytest.raises(ValueError, match="is not between"):
            kind(after_ms=wrong)


def test_the_reason_is_the_text() -> None:
    assert str(Reject("no such address")) == "no such address"
    assert str(Retry(after_ms=1, reason="busy")) == "busy"
