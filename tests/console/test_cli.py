import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

APPLICATION = """
import minutewheel

app = minutewheel.App("letters")

@app.task(queue="mail")
async def mail(payload: dict) -> None: ...
"""


def test_version_and_help(cli: Any) -> None:
    assert cli("--version").stdout == f"minutewheel {version('minutewheel')}\n"
    shown = cli("--help").stdout
    verbs = ("dev", "demo", "submit", "cancel", "reschedule", "get", "list", "audit", "worker")
    for name in (*verbs, "queue", "dead", "config", "loadtest"):
        assert f"\n  {name} " in shown


def test_usage_errors_are_two(cli: Any) -> None:
    assert cli("no-such-command").returncode == 2
    assert cli("submit", "--no-such-option").returncode == 2


def test_a_failing_start_shows_no_secret_and_no_traceback(tmp_path: Path) -> None:
    """SEC-10: planted in every place that settings come from."""
    (tmp_path / "minutewheel.toml").write_text('[kafka]\npassword = "hunter2"\n[worker]\nthreads = "hunter2"\n')
    command = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]
    planted = ("KAFKA__PASSWORD", "BROKER__PASSWORD", "DISPATCHER__LEAD_MS")
    env = {**os.environ, **{f"MINUTEWHEEL_{name}": "hunter2" for name in planted}}
    arguments = ["config", "show", "--set", "store.password=hunter2"]
    ended = subprocess.run([*command, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "hunter2" not in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert "MINUTEWHEEL_BROKER__PASSWORD" in ended.stderr


def test_no_data_folder_is_four(cli: Any) -> None:
    ended = cli("get", "x", "--json")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert "minutewheel dev" in ended.stderr


def test_a_bad_line_in_a_pipe_is_three(cli: Any) -> None:
    good = '{"queue": "mail", "id": "[red]\\u001b[0m", "delay_ms": 1}\n{"queue": "mail", "id": "x", "delay_ms": 1}\n'
    ended = cli("submit", "--file", "-", stdin=good)
    assert ended.returncode == 3
    assert ended.stdout == "2 submitted, 1 accepted, 1 refused, 0 not accepted\n"
    assert ended.stderr.startswith("line 1: bad_id (id): ")


def test_an_interrupt_ends_it_though_the_next_line_never_comes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]
    good = '{"queue": "mail", "delay_ms": 3600000}\n' * 1_000
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [*command, "submit", "--file", "-", "--set", "durability=kill"], cwd=tmp_path, text=True, **pipes
    ) as submit:
        assert submit.stdin is not None
        submit.stdin.write(good + "{}\n" + good)
        submit.stdin.flush()
        assert submit.stderr is not None
        assert submit.stderr.readline().startswith("line 1001: ")
        submit.send_signal(signal.SIGINT)
        assert "stopped: all good lines up to line" in submit.stderr.read()
        assert submit.wait(timeout=30) == 130


def test_dev_serves_refuses_a_second_one_and_drains_at_sigterm(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "letters_tasks.py").write_text(APPLICATION)
    command = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]
    arguments = ["dev", "--app", "letters_tasks:app", "--json", "--set", "durability=kill"]
    with subprocess.Popen(
        [*command, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as dev:
        try:
            assert dev.stdout is not None
            banner = json.loads(dev.stdout.readline())
            assert (banner["serving"], banner["pid"]) == (True, dev.pid)
            second = cli("dev")
            assert second.returncode == 5
            assert str(dev.pid) in second.stderr.splitlines()[-1]
            submitted = cli("submit", "-q", "mail", "--id", "letter", "--in", "100ms", "-p", "{}", "--json")
            assert (submitted.returncode, submitted.stderr) == (0, "")
            seen = json.loads(cli("get", "letter", "--wait", "--within", "20s", "--json").stdout)
            assert seen["state"] == "done"
        finally:
            dev.send_signal(signal.SIGTERM)
        _, err = dev.communicate(timeout=30)
    assert dev.returncode == 0
    events = [json.loads(line) for line in err.splitlines()]
    assert events[-1]["event"] == "left"
    assert not [event for event in events if event["level"] in {"warning", "error"}]
