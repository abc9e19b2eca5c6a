from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from minutewheel import InvalidTask, submission
from minutewheel.worker.request import due_of
from msgspec import Struct

pytestmark = pytest.mark.pure


class Mail(Struct):
    to: str


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidTask, match="has no zone") as caught:
        submission({}, queue="mail", at=datetime(2030, 1, 1))  # noqa: DTZ001
    assert (caught.value.code, caught.value.field) == ("bad_due", "due")
    with pytest.raises(InvalidTask, match="has no zone"):
        submission({}, queue="mail", expires=datetime(2030, 1, 1))  # noqa: DTZ001


def test_times_go_as_they_are_meant() -> None:
    assert submission({}, queue="mail", at=datetime(2030, 1, 1, tzinfo=UTC)).due == "2030-01-01T00:00:00+00:00"
    east = timezone(timedelta(hours=5, minutes=30))
    assert submission({}, queue="mail", at=datetime(2030, 1, 1, tzinfo=east)).due == "2030-01-01T00:00:00+05:30"
    assert submission({}, queue="mail", at=1_893_456_000_000).due == 1_893_456_000_000
    assert submission({}, queue="mail", delay=timedelta(days=1, microseconds=1_999)).delay_ms == 86_400_001
    assert submission({}, queue="mail").delay_ms == 0
    assert due_of(None, timedelta(seconds=1)) == (None, 1_000)
    assert due_of("2030-01-01T00:00:00Z", None) == ("2030-01-01T00:00:00Z", None)


@pytest.mark.parametrize(
    ("payload", "written"),
    [
        (Mail("eve"), b'{"to":"eve"}'),
        ([1, None], b"[1,null]"),
        (None, b"null"),
        (b"\xff", b"\xff"),
        ("é", '"é"'.encode()),
    ],
)
def test_payloads_are_json_and_bytes_stay_bytes(payload: Any, written: bytes) -> None:
    assert submission(payload, queue="mail").payload == written


def test_a_payload_that_json_cannot_say_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for payload in (object(), "\ud800", deep):
        with pytest.raises(InvalidTask, match="can't be written as JSON"):
            submission(payload, queue="mail")


def test_each_gets_an_id_of_its_own_unless_one_is_given() -> None:
    assert submission({}, queue="mail").id != submission({}, queue="mail").id
    assert submission({}, queue="mail", id="mine").id == "mine"
