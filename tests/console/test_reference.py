from pathlib import Path

import pytest
from minutewheel.console import reference
from minutewheel.console.exits import ExitCode
from minutewheel.settings import keys

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("configuration.md", reference.settings, "minutewheel config reference"),
        ("cli.md", reference.commands, "minutewheel config reference --commands"),
    ],
)
def test_the_docs_are_what_the_code_says(file: str, text: object, command: str) -> None:
    assert callable(text)
    assert (DOCS / file).read_text() == text(), f"write it anew: {command} > docs/{file}"


def test_nothing_is_left_out() -> None:
    text = reference.settings()
    assert all(f"| `{key.rpartition('.')[2]}` |" in text for key in keys())
    text = reference.commands()
    assert all(f"\n| {int(code)} | " in text for code in ExitCode)
    for name in ("dev", "demo", "submit", "get KEY", "queue put NAME", "dead redrive [KEY]", "worker MODULE:APP"):
        assert f"\n## `minutewheel {name}`\n" in text
    assert text.count("`--debug`") == 2
