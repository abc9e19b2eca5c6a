import sys
from pathlib import Path
from typing import Any

import pytest
from minutewheel.console import worker
from minutewheel.console.exits import ExitCode, Failure

APPLICATION = """
import os, signal
import minutewheel

app = minutewheel.App("letters")

@app.task(queue="mail")
async def mail(payload: dict) -> None:
    with open("mail.txt", "a") as file:
        file.write(payload["to"])
    os.kill(os.getpid(), signal.SIGTERM)
"""


async def test_it_works_until_a_signal(desk: Any, served_without_worker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler sends the signal: the worker ends, having settled the task."""
    from minutewheel import submission

    monkeypatch.setattr(sys, "path", list(sys.path))
    await served_without_worker.declare(["mail"])
    client = served_without_worker.client()
    await client.submit(submission({"to": "eve"}, queue="mail", id="letter"))
    call, _ = desk.call()
    await worker.worker(call, written_module())
    assert (await client.wait("letter", within_ms=20_000)).state == "done"
    assert read_mail() == "eve"


def written_module() -> str:
    Path("letters_tasks.py").write_text(APPLICATION)
    return "letters_tasks:app"


def read_mail() -> str:
    return Path("mail.txt").read_text()


async def test_no_application_no_worker(desk: Any) -> None:
    with pytest.raises(Failure) as refused:
        await worker.worker(desk.call()[0], "not_there_tasks:app")
    assert refused.value.code is ExitCode.USAGE
    assert not desk.folder.exists()
