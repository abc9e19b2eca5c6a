"""How is what a user sees written, so that nothing in it can act on the terminal?

What people sent (ids, reasons, payloads) may hold anything: escape sequences that recolour the screen, links that lie
about where they lead, marks that turn the direction of writing, markup of the library that prints. It is shown with
every such character spelt out, and is never read as markup. JSON says the same with its own escapes, so what a
program reads is what was sent. Data goes to standard output, all else to standard error.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
"""Control characters, and those that are not seen but change what is: directions, joiners, tags, lone surrogates."""


def plain(value: object) -> str:
    """The value as text of one line that does nothing but stand there."""
    return ACTING.sub(_spelt_out, str(value))


def json_text(value: object) -> str:
    """One JSON document on one line."""
    import msgspec

    return ACTING.sub(_json_escape, msgspec.json.encode(value).decode())


def _spelt_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class Output:
    """Where one command writes to. With `json`, data are JSON documents, one a line."""

    def __init__(self, *, json: bool = False, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.json = json
        self._out = out
        self._err = err

    @property
    def out(self) -> TextIO:
        return self._out or sys.stdout

    @property
    def err(self) -> TextIO:
        return self._err or sys.stderr

    @property
    def live(self) -> bool:
        """Somebody watches standard error: progress may move there."""
        return self.err.isatty()

    def document(self, value: object) -> None:
        """Data for a program."""
        self.out.write(json_text(value) + "\n")

    def line(self, text: str) -> None:
        """Data for a person."""
        self.out.write(plain(text) + "\n")

    def note(self, text: str) -> None:
        """What is no data: for a person, whoever reads the data."""
        self.err.write(plain(text) + "\n")

    def error(self, text: str) -> None:
        for line in text.splitlines() or [""]:
            self.note(f"error: {line}")

    def fields(self, pairs: Iterable[tuple[str, object]]) -> None:
        """Names and values, one a line; empty values are left out."""
        shown = [(name, value) for name, value in pairs if value not in ("", None)]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            self.line(f"{name:<{width}}  {value}")

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows in columns; where nobody watches, tab-separated and uncut."""
        if not self.out.isatty():
            for row in (heads, *rows):
                self.line_of(row)
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(*heads, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(Text(plain(value), overflow="fold") for value in row))
        self.console(self.out).print(table)

    def line_of(self, row: Iterable[object]) -> None:
        self.out.write("\t".join(map(plain, row)) + "\n")

    def console(self, file: TextIO) -> "Console":
        """A console of rich that reads no markup; it heeds NO_COLOR."""
        from rich.console import Console

        return Console(file=file, markup=False, emoji=False, highlight=False)
