import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from minutewheel.deploy.services.errors import ServiceError
from minutewheel.deploy.services.jars import INSTALL_MAVEN, classpath, jars

pytestmark = pytest.mark.pure

COPIES = """#!/bin/sh
echo run >> "{log}"
for argument; do
  case "$argument" in -DoutputDirectory=*) mkdir -p "${{argument#*=}}"; echo jar > "${{argument#*=}}/some.jar";; esac
done
"""
FAILS = """#!/bin/sh
echo 'Could not resolve dependencies'
exit 1
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the `mvn` that a test puts there; the only one on the path."""
    monkeypatch.setenv("MINUTEWHEEL_JARS", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("mkdir", "sh"):
        (programs / program).symlink_to(shutil.which(program) or program)
    monkeypatch.setenv("PATH", str(programs))
    return programs / "mvn"


def put(maven: Path, script: str) -> None:
    maven.write_text(script)
    maven.chmod(0o755)


def test_jars_are_fetched_once_for_each_pom(maven: Path, tmp_path: Path) -> None:
    put(maven, COPIES.format(log=tmp_path / "log"))
    first = jars("zookeeper")
    assert [file.name for file in first.iterdir()] == ["some.jar"]
    assert jars("zookeeper") == first
    assert jars("kafka") != first
    assert classpath("kafka") == f"{jars('kafka')}/*"
    assert (tmp_path / "log").read_text().split() == ["run", "run"]
    assert {folder.name.partition("-")[0] for folder in (tmp_path / "cache").iterdir()} == {"zookeeper", "kafka"}


def test_two_may_fetch_at_once(maven: Path, tmp_path: Path) -> None:
    put(maven, COPIES.format(log=tmp_path / "log"))
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(jars, ["zookeeper"] * 4))
    assert len(folders) == 1
    assert [file.name for file in folders.pop().iterdir()] == ["some.jar"]
    assert len([*(tmp_path / "cache").iterdir()]) == 1


def test_what_maven_says_is_passed_on_and_nothing_is_kept(maven: Path, tmp_path: Path) -> None:
    put(maven, FAILS)
    with pytest.raises(ServiceError, match=r"jars of kafka; it says:\nCould not resolve dependencies"):
        jars("kafka")
    assert [*(tmp_path / "cache").iterdir()] == []


def test_without_maven_one_line_says_what_to_install(maven: Path) -> None:
    with pytest.raises(ServiceError) as caught:
        jars("kafka")
    assert str(caught.value) == INSTALL_MAVEN
    assert "\n" not in INSTALL_MAVEN
