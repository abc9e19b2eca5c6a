import asyncio
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from minutewheel.loadtest import crew as module
from minutewheel.loadtest.crew import Crew, RunFailed, crew, now_ms
from minutewheel.loadtest.evaluation import Start
from minutewheel.loadtest.fault_plan import Do, Fault, What

SERVES = """
import os, sys, time
with open(os.environ["LOADTEST_RECORD"], "a") as record:
    record.write("t/1\\tt/1:1\\t1\\t5\\n")
print("serving", os.environ.get("WORD"), flush=True)
time.sleep(600)
"""
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVES
FAILS = "import sys; print('it has no disk', file=sys.stderr); sys.exit(7)"


@pytest.fixture(autouse=True)
def _serving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMAND", SERVES)


def fault(do: Do, what: What = "dispatcher", for_ms: int = 0) -> Fault:
    return Fault(at_ms=0, do=do, what=what, which=0, for_ms=for_ms)


def codes(one: Crew) -> list[int | None]:
    return [child.process.returncode for child in one.children]


def crew_in(folder: Path) -> AbstractAsyncContextManager[Crew]:
    return crew(folder, ["dev"], [], {"WORD": "up"})


async def test_they_serve_until_they_are_told_to_end_and_what_they_wrote_is_read(tmp_path: Path) -> None:
    async with crew_in(tmp_path) as ours:
        await ours.begin(1, 0)
        assert [child.name for child in ours.children] == ["dispatcher 0"]
        assert codes(ours) == [None]
        ours.look()
        await ours.end()
        assert codes(ours) == [-signal.SIGTERM]
    assert ours.remarks == []


@pytest.mark.parametrize(("do", "code"), [("kill", -signal.SIGKILL), ("stop", -signal.SIGTERM)])
async def test_one_that_was_ended_has_a_successor(tmp_path: Path, do: Do, code: int) -> None:
    before_ms = now_ms()
    async with crew_in(tmp_path) as ours:
        await ours.begin(1, 0)
        await ours.carry_out([fault(do, for_ms=20)], now_ms())
        assert [child.name for child in ours.children] == ["dispatcher 0", "dispatcher 0 (2)"]
        assert codes(ours) == [code, None]
        ours.look()
    (band,) = ours.bands
    assert (band.what, band.whom) == (do, "dispatcher 0")
    assert before_ms <= band.from_ms <= band.to_ms - 20
    excuses = [("dispatcher 0", band.from_ms, band.to_ms)]
    assert ours.strikes == (excuses if do == "kill" else []), "whoever is told to end leaves nothing half done"
    assert ours.remarks == []
    assert codes(ours)[1] == -signal.SIGKILL, "none is left"


async def test_a_worker_s_record_is_read_under_its_name(tmp_path: Path) -> None:
    async with crew_in(tmp_path) as ours:
        await ours.begin(0, 1)
        async with asyncio.timeout(20):
            while not ours.starts:
                ours.look()
                await asyncio.sleep(0.01)
        assert ours.starts == [Start("t/1", "t/1:1", 5, "worker 0")]


async def test_a_pause_stops_a_process_and_lets_it_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    signal_ = module.Child.signal

    def note(child: module.Child, number: signal.Signals) -> None:
        sent.append(number)
        signal_(child, number)

    monkeypatch.setattr(module.Child, "signal", note)
    async with crew_in(tmp_path) as ours:
        await ours.begin(1, 0)
        await ours.carry_out([fault("pause", for_ms=30)], now_ms())
        assert sent == [signal.SIGSTOP, signal.SIGCONT]
        sent.clear()
        pausing = asyncio.create_task(ours.carry_out([fault("pause", for_ms=600_000)], now_ms()))
        async with asyncio.timeout(20):
            while not sent:  # noqa: ASYNC110 - a process is struck in its own time
                await asyncio.sleep(0.01)
        pausing.cancel()
        await asyncio.wait([pausing])
        assert sent == [signal.SIGSTOP, signal.SIGCONT], "it goes on, too, when the run is interrupted"
        await ours.end()
        assert codes(ours) == [-signal.SIGTERM]
    assert [band.what for band in ours.bands] == ["pause", "pause"]


async def test_one_that_does_not_end_when_it_is_told_to_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND", DEAF)
    monkeypatch.setattr(module, "END_S", 0.2)
    async with crew_in(tmp_path) as ours:
        await ours.begin(1, 0)
        await ours.end()
        assert codes(ours) == [-signal.SIGKILL]
    assert ours.remarks == ["dispatcher 0 did not end within 0 s of being told to, and was killed"]


async def test_one_that_does_not_serve_fails_the_run_with_its_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND", FAILS)
    async with crew_in(tmp_path) as ours:
        with pytest.raises(RunFailed, match="dispatcher 0 did not begin to serve: it has no disk"):
            await ours.begin(1, 0)


async def test_where_no_successor_comes_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with crew_in(tmp_path) as ours:
        await ours.begin(1, 0)
        monkeypatch.setattr(module, "COMMAND", FAILS)
        await ours.carry_out([fault("kill")], now_ms())
        ours.look()
    assert ours.remarks == ["dispatcher 0 (2) did not begin to serve: it has no disk"]


async def test_one_that_ends_by_itself_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMAND", FAILS)
    async with crew_in(tmp_path) as ours:
        await ours.begin(0, 1)
        await ours.children[0].process.wait()
        ours.look()
        ours.look()
    assert ours.remarks == ["worker 0 ended by itself with code 7: it has no disk"]


async def test_none_is_left_whatever_happens(tmp_path: Path) -> None:
    async def failing() -> None:
        async with crew_in(tmp_path) as ours:
            seen.append(ours)
            beginning = asyncio.create_task(ours.begin(2, 1))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            beginning.cancel()
            raise ZeroDivisionError

    seen: list[Crew] = []
    with pytest.raises(ZeroDivisionError):
        await failing()
    (ours,) = seen
    assert len(ours.children) == 3
    assert codes(ours) == [-signal.SIGKILL] * 3
