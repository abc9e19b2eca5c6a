import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from minutewheel.console import loadtest
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.console.loadtest_report import report
from minutewheel.loadtest.report import Counts, Lateness, Report

REPORT = Report(
    kind="a kind",
    profile="day",
    seed=1,
    command="a command",
    version="0.1.0",
    started_ms=1,
    duration_ms=1_000,
    complete=True,
    counts=Counts(fired=3, lost=2),
    lateness=Lateness(),
)


def test_a_saved_report_becomes_a_page_beside_it(desk: Any, tmp_path: Path) -> None:
    file, page = tmp_path / "run.json", tmp_path / "run.html"
    file.write_bytes(msgspec.json.encode(REPORT))
    call, screen = desk.call()
    report(call, file)
    assert screen.documents == [{"page": str(page), "bytes": page.stat().st_size}]
    assert "2 tasks lost." in page.read_text()
    call, screen = desk.call(json=False)
    report(call, file, tmp_path / "other.html")
    assert screen.text() == f"{tmp_path / 'other.html'} ({page.stat().st_size:,} bytes)\n"


@pytest.mark.parametrize("text", [b"", b"{}", b"no report"])
def test_a_file_that_is_no_report_is_refused_and_leaves_no_page(desk: Any, tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(text)
    call, _ = desk.call()
    with pytest.raises(Failure, match=r"run\.json is not the report of a load test: ") as refused:
        report(call, file)
    assert refused.value.code == ExitCode.USAGE
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_not_there_is_refused(desk: Any, tmp_path: Path) -> None:
    call, _ = desk.call()
    with pytest.raises(Failure, match="can not be read: No such file") as refused:
        report(call, tmp_path / "none.json")
    assert refused.value.code == ExitCode.USAGE


def test_a_page_never_overwrites_its_report(desk: Any, tmp_path: Path) -> None:
    file = tmp_path / "run.html"
    file.write_bytes(msgspec.json.encode(REPORT))
    call, _ = desk.call()
    with pytest.raises(Failure, match="--out"):
        report(call, file)
    assert file.read_bytes() == msgspec.json.encode(REPORT)


def test_a_day_draws_its_page_and_its_saved_report_becomes_the_same_but_for_the_command(
    desk: Any, tmp_path: Path
) -> None:
    saved, page, later = tmp_path / "day.json", tmp_path / "day.html", tmp_path / "later.html"
    call, screen = desk.call(json=False)
    loadtest.day(
        call,
        tasks=1_000,
        virtual=True,
        profile="steady",
        processes=1,
        folder=tmp_path / "kept",
        report=saved,
        page=page,
    )
    assert "fired_per_minute" not in screen.text(), "too many for a table"
    document = msgspec.json.decode(saved.read_bytes())
    assert sum(document["fired_per_minute"]) == document["tally"]["fired"]
    drawn = page.read_text()
    assert "Nothing lost, none early, none twice." in drawn
    assert "minutewheel loadtest day --virtual --tasks 1000 --profile steady --seed 1 --parts 8 --turn 100" in drawn
    report(call, saved, later)
    facts = re.compile(r'<th scope="row">(command|version)</th><td>.*?</td>')
    assert facts.sub("", later.read_text()) == facts.sub("", drawn)
    assert "not in the file" in later.read_text()


def test_a_day_that_failed_has_its_page_too(desk: Any, tmp_path: Path) -> None:
    call, _ = desk.call()
    page, kept = tmp_path / "day.html", tmp_path / "kept"
    with pytest.raises(Failure, match="not proven"):
        loadtest.day(
            call, tasks=1_000, virtual=True, profile="steady", processes=1, folder=kept, plant="loss", page=page
        )
    assert "1 task lost." in page.read_text()
    assert "--plant loss" in page.read_text()


@pytest.mark.parametrize("option", ["report", "page"])
def test_a_day_whose_page_could_not_be_written_is_not_played(desk: Any, tmp_path: Path, option: str) -> None:
    call, _ = desk.call()
    file, kept = tmp_path / "none" / "day.html", tmp_path / "kept"
    with pytest.raises(Failure, match="there is no folder for") as refused:
        loadtest.day(call, tasks=1_000, virtual=True, profile="steady", processes=1, folder=kept, **{option: file})
    assert refused.value.code == ExitCode.USAGE
    assert not kept.exists()
