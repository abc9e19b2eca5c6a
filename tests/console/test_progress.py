import io

import pytest
from minutewheel.console.output import Output
from minutewheel.console.progress import bars

pytestmark = pytest.mark.pure


class Terminal(io.StringIO):
    """Somebody watches."""

    def isatty(self) -> bool:
        return True


def told(err: io.StringIO) -> str:
    with bars(Output(err=err), {"submitted": 10, "bytes": None}) as tell:
        tell("submitted", 7)
        tell("bytes", 3)
    return err.getvalue()


def test_bars_move_where_somebody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = told(Terminal())
    assert "submitted" in text
    assert "7/10" in text


def test_and_nothing_is_written_where_nobody_does() -> None:
    assert told(io.StringIO()) == ""
