"""How long does a task wait after its n-th failed start?

base × factor^(n − 1), at most the cap, times a jitter of ±20 % that a seed decides: whoever computes the delay of the
same failure, a second owner in replay too, gets the same number (rule D). Pure. The power is compared in logarithms
first, so that no count of failures overflows.
"""

import math

from .progress import mix
from .record import Retry

JITTER = 0.2
_MIX_SPAN = 1 << 64


def backoff_ms(retry: Retry, failures: int, seed: int) -> int:
    """The delay after the `failures`-th (1, 2, …) failed start; `seed` is any integer, such as the filing."""
    assert failures >= 1, failures
    spread = 1 - JITTER + 2 * JITTER * mix(seed + failures & _MIX_SPAN - 1) / _MIX_SPAN
    return min(retry.cap_ms, round(_plain_ms(retry, failures - 1) * spread))


def _plain_ms(retry: Retry, exponent: int) -> float:
    """The delay before its jitter: base × factor^exponent, at most the cap."""
    if retry.base_ms >= retry.cap_ms:
        return retry.cap_ms
    if retry.base_ms <= 0 or exponent == 0:
        return max(0, retry.base_ms)
    if exponent * math.log(retry.factor) >= math.log(retry.cap_ms / retry.base_ms):
        return retry.cap_ms
    return min(retry.cap_ms, retry.base_ms * retry.factor**exponent)
