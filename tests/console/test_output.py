import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.console.output import Output, json_text, plain

pytestmark = pytest.mark.pure

HOSTILE = [
    "\x1b[31mred",
    "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "\x9b31m",
    "\u202egnp.exe",
    "a\u200bb",
    "line\nbreak\r",
    "\U000e0041",
    "\ud800",
]


class Terminal(io.StringIO):
    """Somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("text", HOSTILE)
def test_what_acts_on_a_terminal_is_spelt_out(text: str) -> None:
    assert plain(text).isprintable()
    assert "\\" in plain(text)


@given(st.text())
def test_nothing_acts_and_what_is_plain_stays(text: str) -> None:
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in plain(text))
    if text.isascii() and text.isprintable():
        assert plain(text) == text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_is_on_one_line_and_reads_back_as_it_was(text: str) -> None:
    written = json_text({"text": text})
    assert len(written.splitlines()) == 1
    assert plain(written) == written
    assert json.loads(written) == {"text": text}


@pytest.mark.parametrize("file", [io.StringIO, Terminal])
def test_a_table_reads_no_markup(file: type[io.StringIO]) -> None:
    out = file()
    Output(out=out).table(("key", "reason"), [("default/[red]x[/red]", ":smile: \x1b[1m")])
    assert "default/[red]x[/red]" in out.getvalue()
    assert ":smile: \\x1b[1m" in out.getvalue()


def test_a_table_that_nobody_watches_is_cut_nowhere() -> None:
    out = io.StringIO()
    Output(out=out).table(("a", "b"), [("x" * 500, 1)])
    assert out.getvalue() == f"a\tb\n{'x' * 500}\t1\n"


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    Output(out=out).table(("a",), [("b",)])
    assert "\x1b[3" not in out.getvalue()


def test_data_and_notes_go_apart() -> None:
    out, err = io.StringIO(), io.StringIO()
    output = Output(out=out, err=err)
    output.line("data")
    output.fields([("name", 1), ("longer", "x"), ("left out", "")])
    output.note("note")
    output.error("one\ntwo")
    assert out.getvalue() == "data\nname    1\nlonger  x\n"
    assert err.getvalue() == "note\nerror: one\nerror: two\n"
