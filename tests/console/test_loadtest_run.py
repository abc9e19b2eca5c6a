import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.console.loadtest_run import _judged, run, show
from minutewheel.loadtest.page import page_of
from minutewheel.loadtest.report import Band, Counts, Lateness, Report


def report(*, complete: bool = True, **counts: int) -> Report:
    return Report(
        kind="run",
        profile="steady",
        seed=1,
        command="minutewheel loadtest run",
        version="1",
        started_ms=1_800_000_000_000,
        duration_ms=20_500,
        complete=complete,
        counts=Counts(submitted=1_200, **counts),
        lateness=Lateness(percentiles_ms=((50.0, 4), (99.99, 90), (100.0, 1_100))),
        bands=(Band(what="kill", whom="dispatcher 0", from_ms=1_800_000_008_000, to_ms=1_800_000_009_100),),
        core_s_per_million=1_234.5,
        remarks=("something is to be said",),
    )


def test_a_run_with_a_kill_loses_nothing_and_reports_it(cli: Any, tmp_path: Path) -> None:
    """As users start it: processes, a dispatcher that is killed, a file, and nothing else on standard output."""
    (tmp_path / "faults.json").write_text('[{"at": "2s", "do": "kill", "what": "dispatcher"}]')
    options = [
        "--rate=25",
        "--for=3s",
        "--seed=4",
        "--faults=faults.json",
        "--report=report.json",
        "--page=run.html",
        "--json",
    ]
    ended = cli("loadtest", "run", *options, "--set", "durability=kill")
    assert ended.stderr == ""
    assert ended.returncode == 0
    told = msgspec.json.decode(ended.stdout, type=Report)
    assert msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report) == told
    assert (tmp_path / "run.html").read_text() == page_of(told)
    counts = told.counts
    assert counts.submitted == counts.accepted == counts.fired == counts.done == 75
    assert (counts.lost, counts.duplicated, counts.early, counts.rejected) == (0, 0, 0, 0)
    assert counts.recovered > 0
    (band,) = told.bands
    assert (band.what, band.whom) == ("kill", "dispatcher 0")
    assert 2_000 <= band.from_ms - told.started_ms < band.to_ms - told.started_ms
    assert len({one.member for one in told.tenures}) == 2
    assert {one.shard for one in told.tenures} == set(range(64))
    assert told.heat is not None
    assert sum(map(sum, told.heat.fired)) == 75
    assert {"worker 0", "dispatcher 0", "dispatcher 0 (2)"} <= {
        one.name for one in told.processes
    } or not told.processes
    assert [one.name for one in told.series] == ["submitted", "fired", "done", "lateness p50", "lateness p99"]
    assert sum(one or 0 for one in told.series[1].values) == 75
    assert told.complete
    assert "--seed=4" in told.command
    assert not list(tmp_path.glob(".minutewheel*")), "its data folder was one of its own"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"length": "soon"}, "'soon' is no length of time"),
        ({"length": "10ms"}, "--for"),
        ({"rate": 50_000, "length": "1h"}, "at most 1,000,000 tasks"),
        ({"dispatchers": 2}, "--dispatchers: mode is embedded"),
        ({"report": Path("nowhere/report.json")}, "no folder for nowhere"),
        ({"faults": Path("missing.json")}, "missing.json"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anything_starts(
    desk: Any, options: dict[str, Any], told: str
) -> None:
    call, screen = desk.call()
    with pytest.raises(Failure, match=told) as refused:
        await run(call, **options)
    assert refused.value.code == ExitCode.USAGE
    assert screen.documents == []
    assert not desk.folder.exists()


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"at": "40s", "do": "kill", "what": "worker"}, "fault 1: at: 40s is not within the length of the load"),
        ({"at": "x", "do": "kill", "what": "worker"}, "fault 1: at: 'x' is no length of time"),
        ({"at": "1s", "do": "kill", "what": "worker", "which": 1}, "fault 1: which: there are 1 workers"),
    ],
)
async def test_a_plan_that_makes_no_sense_is_refused_in_one_line(
    desk: Any, tmp_path: Path, fault: dict[str, object], told: str
) -> None:
    call, _ = desk.call()
    (tmp_path / "faults.json").write_text(json.dumps([fault]))
    with pytest.raises(Failure, match="faults.json: " + told) as refused:
        await run(call, faults=tmp_path / "faults.json")
    assert refused.value.code == ExitCode.USAGE
    assert "\n" not in str(refused.value)


def test_a_person_gets_the_same_numbers(desk: Any) -> None:
    _, screen = desk.call(json=False)
    show(screen.output, report(accepted=1_200))
    lines = screen.text().splitlines()
    assert "submitted   1,200" in lines
    assert "lateness    p50 4 ms, p99.99 90 ms, max 1,100 ms" in lines
    assert "at 8.0 s: kill dispatcher 0, over after 1.1 s" in lines
    assert "- something is to be said" in lines


@pytest.mark.parametrize("wrong", ["lost", "early", "duplicated"])
def test_the_exit_code_tells_whether_all_is_well(wrong: str) -> None:
    assert _judged(report(accepted=1_200, rejected=3)) == ExitCode.OK
    with pytest.raises(Failure, match="not as it should be") as failed:
        _judged(report(**{wrong: 1}))
    assert failed.value.code == ExitCode.FAILED
    with pytest.raises(Failure, match="interrupted"):
        _judged(report(complete=False))
