"""A data folder, opened; and one that is served, with an application at work in it."""

import io
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from minutewheel import App, Reject
from minutewheel.console.command import Call
from minutewheel.console.output import Output
from minutewheel.console.serving import serving
from minutewheel.settings import load
from minutewheel.wiring import Installation, opened

COMMAND = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]


@dataclass
class Screen:
    """What a command wrote."""

    json: bool = True
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    @property
    def output(self) -> Output:
        return Output(json=self.json, out=self.out, err=self.err)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]

    def text(self) -> str:
        return self.out.getvalue()


@dataclass
class Desk:
    """Calls of commands on one data folder, each with a screen of its own."""

    folder: Path
    flags: dict[str, object] = field(default_factory=dict)

    def call(self, *, json: bool = True) -> tuple[Call, Screen]:
        screen = Screen(json)
        loaded = load({"data": self.folder, "durability": "kill", **self.flags})
        return Call(loaded.settings, loaded.origins, screen.output), screen


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path / "data")


@pytest.fixture
async def installation(desk: Desk) -> AsyncIterator[Installation]:
    async with opened(desk.call()[0].settings) as opened_one:
        yield opened_one


def application() -> App:
    app = App("tests")

    @app.task(queue="mail")
    async def mail(payload: dict[str, Any] | None) -> None:
        if payload and "reject" in payload:
            raise Reject(payload["reject"])

    return app


@pytest.fixture
async def served(installation: Installation) -> AsyncIterator[Installation]:
    """A dispatcher and a worker serve the folder."""
    await installation.declare(["mail"])
    async with serving([installation.worker(application()), installation.dispatcher()]):
        yield installation


@pytest.fixture
async def served_without_worker(installation: Installation) -> AsyncIterator[Installation]:
    """A dispatcher serves the folder."""
    async with serving([installation.dispatcher()]):
        yield installation


Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command as a process of its own, in an empty folder."""

    def run(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        command = [*COMMAND, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=60, check=False
        )

    return run
