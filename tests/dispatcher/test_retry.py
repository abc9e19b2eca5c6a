"""When a failed attempt is tried again, and what is filed for it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.outcome import Outcome
from minutewheel.dispatcher.retry import SNOOZE_DEFAULT_MS, carried_record, delay_ms, ends_here
from minutewheel.store.backoff import backoff_ms
from minutewheel.store.record import Options, Retry, decode_headers, decode_options, encode_options, unpack

pytestmark = pytest.mark.pure

DEFAULT = Retry()


def outcome(kind: str = "failed", *, max_attempts: int = 3, retry: Retry = DEFAULT, **more: Any) -> Outcome:
    options = encode_options(Options(max_attempts=max_attempts, retry=retry, receipt="r", timeout_ms=9))
    given: dict[str, Any] = {"starts": 1, "payload": b"body", "queue": "mail"} | more
    return Outcome(kind=kind, key="acme/1", shard=0, minute=1, filing=77, origin=5, options=options, **given)


@given(st.integers(1, 20), st.integers(0, 25))
def test_a_failed_task_is_tried_again_while_it_has_started_less_than_its_maximum(maximum: int, starts: int) -> None:
    """Case 47: `max_attempts` are total starts; 1 is no retry."""
    failed = outcome(max_attempts=maximum, starts=starts)
    assert ends_here(failed, ended=False) == (starts >= maximum)
    assert ends_here(failed, ended=True)


@given(st.integers(1, 20), st.integers(0, 200))
def test_a_snoozed_task_goes_on_whatever_it_has_started(maximum: int, starts: int) -> None:
    assert not ends_here(outcome("snoozed", max_attempts=maximum, starts=starts), ended=False)
    assert ends_here(outcome("snoozed", max_attempts=maximum, starts=starts), ended=True)


@pytest.mark.parametrize("kind", ["failed", "unpublishable"])
def test_what_is_not_retryable_ends(kind: str) -> None:
    assert ends_here(outcome(kind, retryable=False), ended=False)


def test_what_the_firing_path_says_ends_though_nobody_says_that_it_may_not_be_retried() -> None:
    assert ends_here(outcome("unpublishable", retryable=True), ended=False)


@given(st.integers(0, 10**9), st.sampled_from(("failed", "snoozed")))
def test_the_handler_s_wish_counts_before_all(wish_ms: int, kind: str) -> None:
    assert delay_ms(outcome(kind, delay_ms=wish_ms)) == wish_ms


def test_without_a_wish_a_snooze_takes_a_second_and_a_failure_the_task_s_own_backoff() -> None:
    assert delay_ms(outcome("snoozed")) == SNOOZE_DEFAULT_MS
    retry = Retry(base_ms=100, factor=3.0, cap_ms=2_000)
    for starts in (1, 2, 3, 10, 10_000):
        assert delay_ms(outcome(retry=retry, starts=starts)) == backoff_ms(retry, starts, 77)
    assert delay_ms(outcome(retry=retry, starts=0)) == backoff_ms(retry, 1, 77)


def test_the_new_record_is_the_delivered_one_with_the_starts_so_far() -> None:
    headers = (("trace", b"1"), ("null", None))
    filed = unpack(carried_record(outcome(starts=2, headers=headers, priority=1, expires_ms=8), attempt=4, fence=6))
    assert (filed.fence, filed.origin, filed.attempt, filed.priority, filed.expires_ms) == (6, 5, 4, 1, 8)
    assert (filed.key, filed.queue, filed.payload) == ("acme/1", "mail", b"body")
    assert decode_headers(filed.headers) == headers
    assert decode_options(filed.options) == Options(max_attempts=3, starts=2, receipt="r", timeout_ms=9)


def test_a_record_that_is_not_there_is_an_empty_payload() -> None:
    assert unpack(carried_record(outcome(payload=None), attempt=1, fence=1)).payload == b""
