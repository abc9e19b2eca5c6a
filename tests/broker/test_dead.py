"""The dead letter as others read it."""

import pytest
from minutewheel.broker.dead import dead_message
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.wire import Topics
from minutewheel.store.record import Filed, encode_headers, pack
from minutewheel.store.task import DeadLetter

pytestmark = pytest.mark.pure

KEY = "acme/order/1"
FILED = Filed(7, 55, 3, 1, 0, KEY, "mail", b"\x80", encode_headers((("a", b"\xff"),)), b"\x00")
LETTER = DeadLetter(KEY, 66, "mail", "boom \ud800", 3, 1_796_115_600_000, pack(FILED), "tried")


def test_it_has_the_payload_and_says_why() -> None:
    message = dead_message(Topics(), LETTER)
    assert (message.topic, message.key, message.value) == ("minutewheel.dead", KEY.encode(), b"\x00")
    assert message.partition == shard_of(KEY)
    assert message.headers == (
        ("a", b"\xff"),
        ("mw_id", b"order/1"),
        ("mw_tenant", b"acme"),
        ("mw_queue", b"mail"),
        ("mw_filing", b"66"),
        ("mw_reason", b"boom ?"),
        ("mw_attempts", b"3"),
        ("mw_died_ms", b"1796115600000"),
        ("mw_history", b"tried"),
    )


def test_a_letter_that_was_taken_away_is_a_null() -> None:
    gone = DeadLetter(KEY, 66, "mail", "", 3, 0, b"")
    assert dead_message(Topics(), gone).value is None
