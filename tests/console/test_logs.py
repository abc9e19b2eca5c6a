import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Literal

import pytest
import structlog
from minutewheel.console import logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def wrong() -> None:
    raise ValueError("wrong \x1b[2m")


def logged(monkeypatch: pytest.MonkeyPatch, form: Literal["auto", "text", "json"], level: str = "info") -> str:
    err = io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    logs.set_up(level, form, err)
    structlog.get_logger("minutewheel.test").info("ours\x1b[31m", key="[red]\x1b[0m\nx", shard=3, queues=("a", "b"))
    logging.getLogger("minutewheel.worker").warning("theirs %s", "\x1b[1m")
    try:
        wrong()
    except ValueError:
        structlog.get_logger("minutewheel.test").exception("failed")
    return err.getvalue()


def test_json_has_one_document_a_line_from_both_ways_of_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs, failed = [json.loads(line) for line in logged(monkeypatch, "auto").splitlines()]
    assert (ours["event"], ours["key"], ours["shard"], ours["level"]) == (
        "ours\\x1b[31m",
        "[red]\\x1b[0m\\nx",
        3,
        "info",
    )
    assert ours["queues"] == ["a", "b"]
    assert (theirs["event"], theirs["logger"], theirs["level"]) == ("theirs \\x1b[1m", "minutewheel.worker", "warning")
    assert "ValueError: wrong \\x1b[2m" in failed["exception"]


def test_text_acts_on_no_terminal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    text = logged(monkeypatch, "text")
    assert "\x1b" not in text
    assert "[red]\\x1b[0m\\nx" in text
    assert "\nValueError: wrong \\x1b[2m" in text


def test_what_is_below_the_level_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [json.loads(line)["level"] for line in logged(monkeypatch, "json", "error").splitlines()] == ["error"]
