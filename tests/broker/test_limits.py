"""Limits that the layouts can't hold are not limits."""

import pytest
from minutewheel.broker.limits import Limits

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    "limits",
    [{"batch_items": 16_385}, {"batch_items": 0}, {"header_bytes": 65_536}, {"id_bytes": 40_000}, {"attempts": 65_536}],
)
def test_too_large(limits: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        Limits(**limits)


def test_the_defaults_are_those_that_are_documented() -> None:
    limits = Limits()
    assert (limits.payload_bytes, limits.id_bytes, limits.batch_items) == (65_536, 256, 16_384)
