"""Does it work here? Tasks due over the next seconds, a real dispatcher, a real worker, and what came of them.

All of it is the embedded product in a scratch folder: the dispatcher here, the worker in a process of its own. The
result is counted from two things that the dispatcher does not write: the worker's own record (see `demo_app`) and the
due topic as a worker sees it, held against what was submitted. The demo ends when all is done, or a while after the
last task was due: then it says what is missing.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Call
from .exits import ExitCode, Failure
from .progress import Tell, bars

if TYPE_CHECKING:
    from ..wiring import Installation
    from .demo_count import Report, Start
    from .output import Output

QUEUE = "demo"
HEAD_MS = 1_500
SUBMITS_PER_MS = 10
"""The first task is due so long after the last will have been submitted at this pace."""
GRACE_S = 15.0
"""After the last due time, so long is waited for what is missing."""
CONCURRENCY = 1_000
"""The worker's, unless it is set: the handler does next to nothing."""
LOOK_S = 0.1
FETCH_RECORDS = 5_000
WORKER = "from minutewheel.console.cli import main; main()"


async def demo(
    call: Call,
    tasks: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many tasks.")] = 10_000,
    over: Annotated[int, typer.Option(min=1, max=3_600, help="They are due over so many seconds.")] = 10,
    seed: Annotated[int | None, typer.Option(help="Of the due times; without it they are fresh.")] = None,
) -> int:
    """Run tasks in a scratch folder and count what became of them.

    The exit code is 0 only if none was lost, early or done twice. With --data, that folder is used and kept.
    """
    from . import logs

    logs.set_up("error", call.settings.log.format, call.output.err)
    with _folder(call) as folder, bars(call.output, {"submitted": tasks, "done": tasks}) as tell:
        settings = call.settings.model_copy(update={"data": folder})
        worker = WorkerProcess(_worker_options(call, folder), folder / "demo-record.tsv")
        report = await run(settings, worker, tasks, over * 1_000, random.Random(seed), tell)  # noqa: S311 - no secret
    if call.output.json:
        call.output.document(report)
    else:
        show(call.output, report)
    return ExitCode.OK if report.good else ExitCode.FAILED


async def run(
    settings: Any, worker: "WorkerProcess", tasks: int, over_ms: int, rng: random.Random, tell: Tell
) -> "Report":
    """Submit, serve, wait, count."""
    from ..wiring import opened
    from .demo_count import count
    from .serving import serving

    began = time.monotonic()
    async with opened(settings) as installation:
        await installation.declare([QUEUE])
        async with serving([worker, installation.dispatcher()]) as ended:
            first_ms = installation.clock.now_ms() + HEAD_MS + tasks // SUBMITS_PER_MS
            due_ms = [first_ms + rng.randrange(over_ms) for _ in range(tasks)]
            accepted = await _submit(installation, due_ms, tell)
            wait_s = (max(due_ms) - installation.clock.now_ms()) / 1_000 + GRACE_S
            await _wait(worker.record, len(accepted), time.monotonic() + wait_s, ended, tell)
        published = await _published(installation)
        return count(tasks, accepted, worker.record.starts(), published, time.monotonic() - began)


class Record:
    """The worker's own record, read as it grows: one line for each start of a handler."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = bytearray()

    def lines(self) -> int:
        """How many lines there are by now."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(len(self._seen))
                self._seen += file.read()
        return self._seen.count(b"\n")

    def starts(self) -> "list[Start]":
        from .demo_count import Start

        self.lines()
        parts = (line.split("\t") for line in self._seen.decode().splitlines())
        return [Start(key, idempotency_key, int(start_ms)) for key, idempotency_key, start_ms in parts]


class WorkerProcess:
    """`minutewheel worker` on the demo's application, as a service."""

    def __init__(self, options: Sequence[str], record: Path) -> None:
        self.record = Record(record)
        self._options = options
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def run(self) -> None:
        """Until it ends; `Failure` if it does so by itself."""
        from .demo_app import RECORD

        command = (sys.executable, "-c", WORKER, "worker", "minutewheel.console.demo_app:app", *self._options)
        env = {**os.environ, RECORD: str(self.record.path)}
        process = await asyncio.create_subprocess_exec(*command, env=env, stdout=asyncio.subprocess.DEVNULL)
        self._process = process
        if self._stopping:
            process.terminate()
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if not self._stopping:
            raise Failure(f"the demo's worker ended with exit code {code}")

    def stop(self) -> None:
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()


def show(output: "Output", report: "Report") -> None:
    """The result, for a person."""
    lateness, published = report.lateness_ms, report.published_ms
    output.fields(
        [
            ("submitted", report.submitted),
            ("accepted", report.accepted),
            ("fired", report.fired),
            ("done", report.done),
            ("lost", report.lost),
            ("duplicated", report.duplicated),
            ("early", report.early),
            ("started after due", f"p50 {lateness.p50} ms, p99 {lateness.p99} ms, max {lateness.max} ms"),
            ("published after due", f"p50 {published.p50} ms, p99 {published.p99} ms, max {published.max} ms"),
            ("took", f"{report.seconds} s"),
        ]
    )
    output.line("Nothing was lost, early or done twice." if report.good else "This is not as it should be.")


@contextmanager
def _folder(call: Call) -> Iterator[Path]:
    if "data" in call.origins and call.origins["data"] == "flag":
        call.settings.data.mkdir(parents=True, exist_ok=True)
        yield call.settings.data
        return
    with tempfile.TemporaryDirectory(prefix="minutewheel-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _worker_options(call: Call, folder: Path) -> list[str]:
    """The worker runs under the same settings: it reads the same file and environment, and gets the flags."""
    from ..settings import shown

    flags: Mapping[str, object] = {key: value for key, value in shown(call.settings).items() if key != "data"}
    sets = [f"{key}={value}" for key, value in flags.items() if call.origins[key] == "flag"]
    if call.origins["worker.concurrency"] == "default":
        sets.append(f"worker.concurrency={CONCURRENCY}")
    sets.append("log.level=error")
    config = [f"--config={call.config}"] if call.config else []
    return [f"--data={folder}", *config, *(f"--set={one}" for one in sets)]


async def _submit(installation: "Installation", due_ms: Sequence[int], tell: Tell) -> dict[str, int]:
    """The due times of those that were accepted, by key."""
    from ..broker.compose import Submission
    from ..worker import Accepted

    run_id = f"{installation.clock.now_ms():x}"
    wanted = (
        Submission(id=f"{run_id}-{number}", queue=QUEUE, payload=b"%d" % number, due=at_ms)
        for number, at_ms in enumerate(due_ms)
    )
    accepted: dict[str, int] = {}
    async for answer in installation.client().submit_many(wanted):
        if isinstance(answer, Accepted):
            accepted[answer.key] = due_ms[answer.index]
        tell("submitted", answer.index + 1)
    return accepted


async def _wait(record: Record, wanted: int, until_s: float, ended: asyncio.Event, tell: Tell) -> None:
    """Until all have started, the time is up, or the services have ended."""
    while (lines := record.lines()) < wanted and time.monotonic() < until_s and not ended.is_set():
        tell("done", lines)
        await asyncio.sleep(LOOK_S)


async def _published(installation: "Installation") -> dict[str, int]:
    """When each task was published first, from the due topic: the broker's time by key."""
    from ..broker.due import parse_due
    from ..store.task import SHARDS

    topic = installation.topics.due(QUEUE)
    times: dict[str, int] = {}
    for partition, bounds in enumerate(await installation.broker.bounds(topic, range(SHARDS))):
        offset = bounds.start
        while offset < bounds.end:
            fetched = await installation.broker.fetch(topic, partition, offset, FETCH_RECORDS, 0)
            for record in fetched.records:
                times.setdefault(parse_due(record).key, record.time_ms)
            offset = fetched.next_offset
    return times
