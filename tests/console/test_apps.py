import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.console.apps import load_app
from minutewheel.console.exits import ExitCode, Failure

MODULE = """
import minutewheel
app = minutewheel.App("found")
other = 3
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "some_tasks.py").write_text(MODULE)
    (tmp_path / "broken_tasks.py").write_text("import not_there_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("some_tasks", "broken_tasks"):
        sys.modules.pop(name, None)


def test_an_app_is_found_from_the_working_folder() -> None:
    assert load_app("some_tasks:app").name == "found"


@pytest.mark.parametrize(
    ("spec", "about"),
    [
        ("some_tasks", "module:app"),
        (":app", "module:app"),
        ("no_tasks:app", "no module no_tasks"),
        ("some_tasks.inner:app", "no module"),
        ("some_tasks:other", "no App"),
        ("some_tasks:gone", "no App"),
    ],
)
def test_why_there_is_none(spec: str, about: str) -> None:
    with pytest.raises(Failure, match=about) as refused:
        load_app(spec)
    assert refused.value.code is ExitCode.USAGE


def test_an_error_of_the_module_is_its_own() -> None:
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        load_app("broken_tasks:app")
