import time

from minutewheel.worker import SystemClock


async def test_a_sleep_lasts_at_least_as_long_as_asked_on_the_monotonic_clock() -> None:
    clock = SystemClock()
    before_ms = clock.monotonic_ms()
    await clock.sleep_ms(5)
    assert clock.monotonic_ms() >= before_ms + 5
    assert abs(clock.now_ms() - time.time() * 1_000) < 60_000
