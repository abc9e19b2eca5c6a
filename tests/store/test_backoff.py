import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.backoff import JITTER, backoff_ms
from minutewheel.store.record import Retry

pytestmark = pytest.mark.pure

policies = st.builds(
    Retry,
    base_ms=st.integers(0, 10**9),
    factor=st.floats(0.1, 1_000, allow_nan=False),
    cap_ms=st.integers(0, 10**12),
)
seeds = st.integers(-(2**63), 2**70)


@given(policies, st.integers(1, 10**6), seeds)
def test_a_delay_is_never_negative_and_never_above_the_cap(retry: Retry, failures: int, seed: int) -> None:
    assert 0 <= backoff_ms(retry, failures, seed) <= retry.cap_ms


@given(policies, seeds)
def test_the_millionth_failure_of_a_growing_policy_waits_about_the_cap(retry: Retry, seed: int) -> None:
    growing = Retry(base_ms=max(1, retry.base_ms), factor=max(1.1, retry.factor), cap_ms=retry.cap_ms)
    assert backoff_ms(growing, 10**6, seed) >= int(growing.cap_ms * (1 - JITTER))


@given(st.integers(1, 12), seeds)
def test_the_defaults_double_from_one_second(failures: int, seed: int) -> None:
    expected = 1_000 * 2 ** (failures - 1)
    assert abs(backoff_ms(Retry(), failures, seed) - expected) <= expected * JITTER + 1


@given(policies, st.integers(1, 10**6), seeds)
def test_the_same_failure_gets_the_same_delay(retry: Retry, failures: int, seed: int) -> None:
    assert backoff_ms(retry, failures, seed) == backoff_ms(retry, failures, seed)


def test_seeds_spread_a_crowd_over_the_whole_jitter() -> None:
    delays = [backoff_ms(Retry(), 1, seed) for seed in range(1_000)]
    assert min(delays) < 820
    assert max(delays) > 1_180
    assert len(set(delays)) > 300
