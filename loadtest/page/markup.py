"""How does text become HTML in which it can do nothing but stand there?

Names of members, commands and remarks may hold anything. Whatever is not `Html` is escaped where it is put in, and
characters that are not seen but act (controls, marks that turn the direction of writing, lone surrogates) are spelt
out.
"""

import html
import unicodedata
from collections.abc import Iterable

ACTING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode's categories of characters that do something instead of being seen."""
VOID = frozenset(("meta", "link", "br"))


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | None
Value = str | float | None


def tag(name: str, /, *children: Child, **attributes: Value) -> Html:
    """One element. `class_="a"` is the attribute `class`, `aria_label` is `aria-label`; None is left out."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{joined(children)}</{name}>")


def joined(children: Iterable[Child], between: str = "") -> Html:
    """All of them, one after the other; None is left out."""
    return Html(between.join(escaped(child) for child in children if child is not None))


def escaped(text: str) -> Html:
    if isinstance(text, Html):
        return text
    return Html(html.escape("".join(map(_seen, text))))


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], class_: str | None = None) -> Html:
    """Whose first column names the row; it can be moved sideways where it is wider than the page."""
    head = tag("tr", *(tag("th", one, scope="col") for one in heads))
    body = (tag("tr", tag("th", first, scope="row"), *(tag("td", one) for one in rest)) for first, *rest in rows)
    whole = tag("table", tag("thead", head), tag("tbody", *body), class_=class_)
    return tag("div", whole, class_="sideways", tabindex="0", role="region", aria_label="table")


def folded(summary: str, *children: Child) -> Html:
    """What is shown to who asks for it."""
    return tag("details", tag("summary", summary), *children)


def _seen(character: str) -> str:
    if character.isascii() and character.isprintable():
        return character
    if unicodedata.category(character) in ACTING:
        return character.encode("unicode_escape").decode()
    return character
