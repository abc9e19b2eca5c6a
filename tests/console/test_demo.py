import json
import sys
from pathlib import Path
from typing import Any

import pytest
from minutewheel.console import demo
from minutewheel.console.demo import WorkerProcess
from minutewheel.console.exits import ExitCode, Failure


def test_the_whole_of_it(cli: Any, tmp_path: Path) -> None:
    """A process with a worker process, as users start it; the numbers, and nothing else, on standard output."""
    ended = cli("demo", "--tasks", "300", "--over", "1", "--json", "--data", "kept", "--set", "durability=kill")
    report = json.loads(ended.stdout)
    assert ended.stderr == ""
    assert {report[name] for name in ("submitted", "accepted", "fired", "done")} == {300}
    assert {report[name] for name in ("lost", "duplicated", "early")} == {0}
    for name in ("lateness_ms", "published_ms"):
        assert 0 <= report[name]["p50"] <= report[name]["p99"] <= report[name]["max"]
    assert ended.returncode == 0
    lines = (tmp_path / "kept" / "demo-record.tsv").read_text().splitlines()
    assert len({line.split("\t")[0] for line in lines}) == 300


class DeafWorker(WorkerProcess):
    """One that runs nothing."""

    async def run(self) -> None:
        while not self._stopping:
            await demo.asyncio.sleep(0.01)


async def test_it_ends_and_says_what_is_missing(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "GRACE_S", 0.5)
    monkeypatch.setattr(demo, "HEAD_MS", 500)
    monkeypatch.setattr(demo, "WorkerProcess", DeafWorker)
    call, screen = desk.call()
    assert await demo.demo(call, tasks=20, over=1, seed=1) == ExitCode.FAILED
    (report,) = screen.documents
    assert (report["submitted"], report["accepted"], report["fired"]) == (20, 20, 20)
    assert (report["done"], report["lost"]) == (0, 20)


async def test_a_worker_that_ends_by_itself_is_a_failure(tmp_path: Path) -> None:
    worker = WorkerProcess(["--data=x", "--no-such-option"], tmp_path / "record.tsv")
    with pytest.raises(Failure, match="exit code 2"):
        await worker.run()


def test_a_person_gets_the_same_numbers(desk: Any) -> None:
    from minutewheel.console.demo_count import Start, count

    _, screen = desk.call(json=False)
    demo.show(screen.output, count(1, {"t/1": 5}, [Start("t/1", "k", 8)], {"t/1": 6}, 2.0))
    assert "started after due    p50 3 ms, p99 3 ms, max 3 ms" in screen.text()
    assert "Nothing was lost" in screen.text()
    assert sys.stdout is not screen.out
