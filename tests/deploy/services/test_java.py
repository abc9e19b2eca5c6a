from collections.abc import Iterator
from pathlib import Path

import pytest
from minutewheel.deploy.services.errors import ServiceError
from minutewheel.deploy.services.java import java, version_of

pytestmark = pytest.mark.pure

SEVENTEEN = 'openjdk version "17.0.15" 2025-04-15'
EIGHT = 'java version "1.8.0_402"'


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is remembered of other tests, and the system's own places are not looked at."""
    monkeypatch.setattr("minutewheel.deploy.services.java.PLACES", Path("/nowhere"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java.cache_clear()
    yield
    java.cache_clear()


def made(folder: Path, says: str) -> str:
    program = folder / "bin/java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("says", "version"), [(SEVENTEEN, 17), (EIGHT, 8), ('openjdk version "21" 2023-09-19', 21), ("what?", None)]
)
def test_the_version_is_what_the_program_says(tmp_path: Path, says: str, version: int | None) -> None:
    assert version_of(made(tmp_path, says)) == version


def test_a_program_that_is_not_there_has_no_version() -> None:
    assert version_of("/nowhere/java") is None


def test_java_home_comes_first_then_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, on_path = made(tmp_path / "home", SEVENTEEN), made(tmp_path / "path", SEVENTEEN)
    monkeypatch.setenv("PATH", str(Path(on_path).parent))
    assert java() == on_path
    java.cache_clear()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java() == home


def test_one_of_another_version_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "home", EIGHT)
    on_path = made(tmp_path / "path", SEVENTEEN)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(Path(on_path).parent))
    assert java() == on_path


def test_the_error_is_one_line_with_what_was_found_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServiceError, match=r"^Java 17 is needed .*there is none.*openjdk-17-jre-headless.*JAVA_HOME$"):
        java()
    program = made(tmp_path / "home", EIGHT)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    with pytest.raises(ServiceError, match=rf"^Java 17 is needed .*{program} is version 8.*JAVA_HOME$"):
        java()
