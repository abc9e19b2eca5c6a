import logging

import pytest
from minutewheel.broker import kafka_log
from minutewheel.broker.kafka_client import log
from minutewheel.broker.kafka_log import Repeats

REFUSED = "FAIL [producer-%s] [thrd:a:9092/%s]: Connect failed: Connection refused (after %sms in state CONNECT)"


def record(said_s: float, message: str, *args: object, level: int = logging.ERROR) -> logging.LogRecord:
    made = logging.LogRecord("minutewheel.kafka", level, __file__, 1, message, args, None)
    made.created = said_s
    return made


def test_the_same_is_said_once_in_a_while_and_how_often_it_was_said_meanwhile() -> None:
    repeats = Repeats()
    times = [1_000.0 + 0.25 * n for n in range(200)]
    said = [one for at in times if repeats.filter(one := record(at, REFUSED, 1, 1, int(at) % 7))]
    assert [one.created for one in said] == [1_000.0, 1_030.0]
    assert "said" not in said[0].getMessage()
    assert said[1].getMessage().endswith("(said 119 times more since)")


def test_what_differs_in_more_than_figures_is_told_apart() -> None:
    repeats = Repeats()
    lines = [
        record(1.0, REFUSED, 1, 1, 0),
        record(1.0, "FAIL: %s", "SASL authentication error"),
        record(1.0, "FAIL: %s", "SASL authentication error", level=logging.WARNING),
    ]
    assert all(repeats.filter(line) for line in lines)


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    repeats = Repeats()
    assert repeats.filter(record(5_000.0, "gone"))
    assert repeats.filter(record(1_000.0, "gone"))


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_log, "KEPT", 3)
    repeats = Repeats()
    assert all(repeats.filter(record(1.0, name)) for name in "abcd")
    assert repeats.filter(record(2.0, "a"))
    assert not repeats.filter(record(2.0, "d"))


def test_the_clients_log_goes_through_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, log.name):
        for attempt in range(3):
            log.error("FAIL [the_test_of_repeats] refused after %dms", attempt)
    assert [one.getMessage() for one in caplog.records] == ["FAIL [the_test_of_repeats] refused after 0ms"]
