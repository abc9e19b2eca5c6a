"""What can be read of a due task without decoding it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.dispatcher.due import Due, lane_of, queue_of
from minutewheel.store.record import Filed, encode_headers, pack

pytestmark = pytest.mark.pure

QUEUES = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)


def record(queue: str, priority: int, key: str = "acme/1", options: bytes = b"\x80", payload: bytes = b"") -> bytes:
    headers = encode_headers((("k", b"v"),))
    return pack(Filed(3, 4, 1, priority, 0, key, queue, options, headers, payload))


@given(QUEUES, st.integers(1, 3), st.text(min_size=1, max_size=256), st.binary(max_size=40), st.binary(max_size=40))
def test_queue_and_priority_are_those_of_the_record(
    queue: str, priority: int, key: str, options: bytes, payload: bytes
) -> None:
    one = record(queue, priority, key, options, payload)
    due = Due(5, 1, 60_000, 4, one)
    assert (due.queue, due.priority) == (queue, priority)
    assert queue_of(one) == queue


@given(QUEUES, QUEUES, st.integers(1, 3), st.integers(1, 3))
def test_tasks_share_a_lane_exactly_if_queue_and_priority_are_the_same(
    queue: str, other: str, priority: int, another: int
) -> None:
    same = (queue, priority) == (other, another)
    assert (lane_of(record(queue, priority, "a/1")) == lane_of(record(other, another, "b/22"))) == same


def test_two_dues_of_the_same_content_are_two() -> None:
    one = record("mail", 2)
    assert Due(5, 1, 60_000, 4, one) != Due(5, 1, 60_000, 4, one)
