import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.coordinator.lease import Trust
from minutewheel.coordinator.watchdog import Watchdog, left_ms

pytestmark = pytest.mark.pure

MS = st.integers(0, 10**9)


@given(beat_ms=MS, pause_ms=MS, limit_ms=st.integers(1, 10**6))
def test_the_loop_may_stand_still_for_the_limit_and_not_longer(beat_ms: int, pause_ms: int, limit_ms: int) -> None:
    left = left_ms(beat_ms, beat_ms + pause_ms, limit_ms)
    assert (left == 0) == (pause_ms >= limit_ms)
    assert left_ms(beat_ms, beat_ms + pause_ms + left, limit_ms) == 0


@given(sent_ms=MS, later_ms=MS, pause_ms=MS, timeout_ms=st.integers(1, 10**6))
def test_who_is_still_trusted_is_never_ended(sent_ms: int, later_ms: int, pause_ms: int, timeout_ms: int) -> None:
    """The last beat is the sending of a renewal: the last that was acknowledged, or a later one."""
    beat_ms = sent_ms + later_ms
    now_ms = beat_ms + pause_ms
    if left_ms(beat_ms, now_ms, timeout_ms) == 0:
        assert not Trust(sent_ms, timeout_ms).trusted(now_ms)


class Clock:
    """Goes on by `step_ms` at each look."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.step_ms = 0
        self.watched = threading.Event()

    def __call__(self) -> int:
        self.now_ms += self.step_ms
        if threading.current_thread().name == "minutewheel-watchdog":
            self.watched.set()
        return self.now_ms


def test_it_calls_once_when_no_beat_came_for_the_limit() -> None:
    clock, stalls, stalled = Clock(), list[str](), threading.Event()

    def on_stall() -> None:
        stalls.append(threading.current_thread().name)
        stalled.set()

    clock.step_ms = 5
    watchdog = Watchdog(lambda: 20, clock, on_stall)
    assert stalled.wait(10)
    assert stalls == ["minutewheel-watchdog"]
    watchdog.beat()
    watchdog.stop()
    assert stalls == ["minutewheel-watchdog"]


def test_beats_hold_it_off_and_it_can_be_stopped() -> None:
    clock, stalls = Clock(), list[None]()
    watchdog = Watchdog(lambda: 20, clock, lambda: stalls.append(None))
    for _ in range(5):
        clock.now_ms += 19
        clock.watched.clear()
        assert clock.watched.wait(10)
        watchdog.beat()
    watchdog.stop()
    watchdog.stop()
    assert stalls == []
