from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel import Reject, Retry, Snooze
from minutewheel.broker.due import parse_due
from minutewheel.broker.wire import Record
from minutewheel.store.record import Options
from minutewheel.worker.attempt import REASON_LIMIT, before_start, ending_of, reason_of
from msgspec import msgpack

pytestmark = pytest.mark.pure


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@given(st.sampled_from([ValueError, Reject, OSError]), st.text(st.characters(), max_size=3_000))
def test_a_reason_is_one_bounded_text_that_any_encoder_takes(kind: type[Exception], text: str) -> None:
    reason = reason_of(kind(text))
    assert len(reason) <= REASON_LIMIT
    assert msgpack.decode(msgpack.encode(reason)) == reason


def test_lone_surrogates_and_failing_texts_are_reasons_too() -> None:
    assert reason_of(ValueError("\ud800")) == "ValueError: ?"
    assert reason_of(Unspeakable()) == "Unspeakable"
    assert reason_of(KeyError()) == "KeyError"


def test_what_a_handler_says_is_taken_as_it_says() -> None:
    assert (ending_of(Retry(after_ms=5)).kind, ending_of(Retry(after_ms=5)).delay_ms) == ("failed", 5)
    assert (ending_of(Snooze(after_ms=6)).kind, ending_of(Snooze(after_ms=6)).delay_ms) == ("snoozed", 6)
    assert (ending_of(Reject("no")).retryable, ending_of(Reject("no")).reason) == (False, "no")
    assert (ending_of(ValueError("x")).retryable, ending_of(ValueError("x")).delay_ms) == (True, None)


async def test_what_may_be_started(stand: Any) -> None:
    message = stand.due("acme/a", options=Options(max_attempts=2), expires_ms=1_000)
    delivered = parse_due(Record(message.topic, 0, 0, 0, message.key, message.value, message.headers))
    assert before_start(delivered, 2, 1_000) is None
    late = before_start(delivered, 1, 1_001)
    assert late is not None
    assert late.kind == "expired"
    lost = before_start(delivered, 3, 1_000)
    assert lost is not None
    assert (lost.kind, lost.reason, lost.retryable) == ("failed", "worker lost", False)
