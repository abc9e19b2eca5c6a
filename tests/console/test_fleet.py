"""A fleet on the real services, by its commands: from nothing to a task that has run, and to the end by SIGTERM."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from minutewheel.console import fleet as commands
from minutewheel.console.command import Call
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.console.times import moment

COMMAND = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]
PATIENCE_S = 90.0
"""A minute closes some seconds after its end."""

APPLICATION = """
import minutewheel

app = minutewheel.App("letters")

@app.task(queue="mail")
async def mail(payload: dict) -> None:
    with open("mail.txt", "a") as file:
        file.write(payload["to"])
"""


class Hall:
    """Commands of one fleet, each in a process of its own."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.folder = folder
        self._options = ["--config", str(config), "--json"]

    def run(self, *arguments: str) -> tuple[int, list[Any]]:
        """The exit code, and the documents."""
        command = [*COMMAND, *arguments, *self._options]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        assert "Traceback" not in done.stderr
        print(*arguments, done.returncode, done.stderr)  # what a failure below is judged by
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    @contextmanager
    def serving(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """A process that is ended by SIGTERM, with code 0."""
        command = [*COMMAND, *arguments, *self._options]
        with (
            (self.folder / "log.txt").open("a") as log,
            subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        ):
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                code = process.wait(PATIENCE_S)
        assert code == ExitCode.OK

    def until(self, wanted: Callable[[list[Any]], bool], *arguments: str) -> list[Any]:
        """Run the command again until its documents are as wanted."""
        end = time.monotonic() + PATIENCE_S
        documents: list[Any] = []
        while time.monotonic() < end:
            _, documents = self.run(*arguments)
            if wanted(documents):
                return documents
        pytest.fail(f"{arguments} never said what was waited for, but {documents[:3]}")


@pytest.fixture(scope="module")
def hall(unset_fleet: Any, tmp_path_factory: pytest.TempPathFactory) -> Hall:
    return Hall(tmp_path_factory.mktemp("hall"), unset_fleet.config)


def serves(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.real
def test_a_fleet_from_its_set_up_to_its_end(hall: Hall) -> None:
    missing = {"faults": [f"keyspace {keyspace_of(hall)} is missing"]}
    assert hall.run("setup", "--check") == (ExitCode.FAILED, [missing])
    assert hall.run("shards") == (ExitCode.NOT_FOUND, [])
    assert hall.run("setup") == (ExitCode.OK, [{"faults": []}])
    code, before = hall.run("shards")
    assert code == ExitCode.OK
    assert hall.run("setup") == (ExitCode.OK, [{"faults": []}])
    assert hall.run("setup", "--check") == (ExitCode.OK, [{"faults": []}])
    code, after = hall.run("shards")
    assert code == ExitCode.OK
    assert ours(after) == ours(before), "a second set-up changes nothing"

    (hall.folder / "letters_tasks.py").write_text(APPLICATION)
    with (
        hall.serving("dispatcher") as first,
        hall.serving("dispatcher") as second,
        hall.serving("worker", "letters_tasks:app"),
    ):
        members = {serves(process)["member"] for process in (first, second)}
        assert len(members) == 2, "one host, one configuration, and yet two members"
        shards = hall.until(lambda shards: {shard["owner"] for shard in shards} == members, "shards")
        assert [shard["shard"] for shard in shards] == list(range(64)), "each has one owner"
        assert all(shard["fence"] > 0 for shard in shards)

        now_ms = int(time.time() * 1_000)
        minute = str(now_ms // 60_000)
        asked = ["submit", "--queue", "mail", "--payload", '{"to": "eve"}']
        assert hall.run(*asked, "--id", "letter", "--at", moment(now_ms))[0] == ExitCode.OK
        later = moment((int(minute) + 5) * 60_000)
        assert hall.run(*asked, "--id", "never", "--at", later)[0] == ExitCode.OK
        hall.until(lambda found: found[0]["state"] == "done", "get", "letter")
        assert (hall.folder / "mail.txt").read_text() == "eve"
        assert hall.run("cancel", "never")[0] == ExitCode.OK

        _, (audit,) = hall.run("audit", "--minute", str(int(minute) + 5))
        assert (audit["rows"], audit["fired"], audit["removed"], audit["missing"]) == (1, 0, 1, [])
        (audit,) = hall.until(lambda audit: audit[0]["state"] == "closed", "audit", "--minute", minute)
        assert (audit["rows"], audit["fired"], audit["missing"]) == (1, 1, []), "as its closing record says"
    assert {shard["owner"] for shard in hall.run("shards")[1]} == {""}, "all is handed back at the end"


def keyspace_of(hall: Hall) -> str:
    return str(hall.run("config", "show")[1][0]["cassandra.keyspace"])


def ours(shards: list[Any]) -> list[Any]:
    return [{name: shard[name] for name in ("shard", "owner", "fence", "open_minute")} for shard in shards]


async def test_a_data_folder_has_no_fleet(desk: Any) -> None:
    call: Call = desk.call()[0]
    for ask in (commands.dispatcher(call), commands.setup(call, check=True)):
        with pytest.raises(Failure) as refused:
            await ask
        assert refused.value.code == ExitCode.USAGE


async def test_setting_up_a_data_folder_makes_it(desk: Any) -> None:
    assert await commands.setup(desk.call()[0]) == ExitCode.OK
    assert (desk.folder / "store.sqlite").is_file()


def test_faults_are_one_a_line_and_none_is_said_aside(desk: Any) -> None:
    call, screen = desk.call(json=False)
    commands.show_faults(["a", "b"], call.output)
    assert screen.text() == "a\nb\n"
    call, screen = desk.call(json=False)
    commands.show_faults([], call.output)
    assert screen.text() == ""
    assert "set up" in screen.err.getvalue()
