import json
from typing import Annotated

import pytest
import typer
from minutewheel.console.command import Call, command, environment_of
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.console.output import Output
from minutewheel.settings import load
from typer.testing import CliRunner

app = typer.Typer(pretty_exceptions_enable=False)


@command(app)
async def waits(call: Call, number: Annotated[int, typer.Argument()], word: str = "none") -> int:
    """Wait, and say what was given."""
    call.output.document({"number": number, "word": word, "data": str(call.settings.data), "json": call.output.json})
    return ExitCode.OK


@command(app, "fails")
def _fails(call: Call, how: Annotated[str, typer.Argument()]) -> None:
    if how == "known":
        raise Failure("[red]it\x1b[0m went wrong", ExitCode.NOT_FOUND)
    if how == "other":
        raise TypeError("\x1b[31munexpected")
    raise ExceptionGroup("some", [ExceptionGroup("more", [_raised()]), ValueError("odd")])


def _raised() -> Exception:
    try:
        return ValueError({}[7])
    except KeyError as error:
        return error


run = CliRunner().invoke


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))
    monkeypatch.delenv("MINUTEWHEEL_DATA", raising=False)


def test_a_command_gets_its_options_and_those_of_all() -> None:
    result = run(app, ["waits", "3", "--word", "x", "--data", "here", "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"number": 3, "word": "x", "data": "here", "json": True}


def test_any_setting_may_be_set() -> None:
    assert json.loads(run(app, ["waits", "3", "--set", "data=there"]).stdout)["data"] == "there"
    assert run(app, ["waits", "3", "--set", "data"]).exit_code == 2
    wrong = run(app, ["waits", "3", "--set", "dataa=there"])
    assert (wrong.exit_code, wrong.stderr) == (2, "error: dataa (flag) is no setting; did you mean data?\n")


def test_a_known_failure_is_one_line_and_its_number() -> None:
    result = run(app, ["fails", "known"])
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == "error: [red]it\\x1b[0m went wrong\n"


def test_an_unexpected_one_has_a_traceback_only_when_asked() -> None:
    result = run(app, ["fails", "other"])
    assert result.exit_code == 1
    where = "test_command.py:27 (--debug shows the traceback)"
    assert result.stderr == f"error: unexpected TypeError: \\x1b[31munexpected at {where}\n"
    assert isinstance(run(app, ["fails", "other", "--debug"]).exception, TypeError)


def test_of_a_group_of_unexpected_ones_each_is_told() -> None:
    """A log holds this one line, and a service that ends so ends for a reason."""
    result = run(app, ["fails", "many"])
    assert result.stderr == (
        "error: unexpected KeyError: 7 at test_command.py:33; ValueError: odd (--debug shows the traceback)\n"
    )


def test_another_process_gets_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINUTEWHEEL_WORKER__CONCURRENCY", "7")
    services = {f"{name}.security": "plaintext" for name in ("cassandra", "kafka", "zookeeper")}
    flags: dict[str, object] = {
        "data": "here",
        "queues": "a,b",
        "declare_queues": "false",
        "kafka.bootstrap": "h:1,g:2",
        "cassandra.username": "we",
        "cassandra.password": "our secret",
        **services,
    }
    ours = load(flags)
    variables = environment_of(Call(ours.settings, ours.origins, Output()))
    assert variables["MINUTEWHEEL_CASSANDRA__PASSWORD"] == "our secret"
    assert "MINUTEWHEEL_WORKER__CONCURRENCY" not in variables, "the environment reaches it by itself"
    assert "MINUTEWHEEL_DATA" not in variables
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    theirs = load({"data": "here"})
    assert theirs.settings == ours.settings
