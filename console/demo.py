"""Does it work here? Tasks due over the next seconds, a real dispatcher, a real worker, and what came of them.

All of it is the embedded product in a scratch folder. The result is counted from two things that the dispatcher does
not write: the worker's own record (one line appended when a handler starts) and the due topic as a worker sees it,
held against what was submitted. The demo ends when all is done, or a while after the last task was due: then it says
what is missing.
"""

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from .command import Call
from .exits import ExitCode
from .progress import Tell, bars

if TYPE_CHECKING:
    from ..wiring import Installation
    from ..worker import App
    from .demo_count import Report, Start
    from .output import Output

QUEUE = "demo"
HEAD_MS = 1_000
SUBMITS_PER_MS = 10
"""The first task is due a second after the last will have been submitted at this pace."""
GRACE_S = 15.0
"""After the last due time, so long is waited for what is missing."""
LOOK_S = 0.1
FETCH_RECORDS = 5_000


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
        report = await run(settings, tasks, over * 1_000, random.Random(seed), tell)  # noqa: S311 - not a secret
    if call.output.json:
        call.output.document(report)
    else:
        show(call.output, report)
    return ExitCode.OK if report.good else ExitCode.FAILED


async def run(settings: Any, tasks: int, over_ms: int, rng: random.Random, tell: Tell) -> "Report":
    """Submit, serve, wait, count."""
    from ..wiring import opened
    from .demo_count import count
    from .serving import serving

    began = time.monotonic()
    async with opened(settings) as installation:
        await installation.declare([QUEUE])
        with Record(settings.data / "demo-record.tsv") as record:
            async with serving([installation.worker(_app(record)), installation.dispatcher()]) as ended:
                first_ms = installation.clock.now_ms() + HEAD_MS + tasks // SUBMITS_PER_MS
                due_ms = [first_ms + rng.randrange(over_ms) for _ in range(tasks)]
                accepted = await _submit(installation, due_ms, tell)
                wait_s = (max(due_ms) - installation.clock.now_ms()) / 1_000 + GRACE_S
                await _wait(record, len(accepted), time.monotonic() + wait_s, ended, tell)
            published = await _published(installation)
            return count(tasks, accepted, record.read(), published, time.monotonic() - began)


class Record:
    """The worker's own record: a file that is only appended to, one line for each start of a handler."""

    def __init__(self, path: Path) -> None:
        self.lines = 0
        self._path = path
        self._file = path.open("ab", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, key: str, idempotency_key: str, start_ms: int) -> None:
        self._file.write(f"{key}\t{idempotency_key}\t{start_ms}\n".encode())
        self.lines += 1

    def read(self) -> "list[Start]":
        from .demo_count import Start

        parts = (line.split("\t") for line in self._path.read_text().splitlines())
        return [Start(key, idempotency_key, int(start_ms)) for key, idempotency_key, start_ms in parts]


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


def _app(record: Record) -> "App":
    from ..worker import App, AsyncContext

    app = App("demo")

    @app.task(queue=QUEUE)
    async def work(_payload: int, context: AsyncContext) -> None:
        record.append(context.key, context.idempotency_key, time.time_ns() // 1_000_000)

    return app


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
    while record.lines < wanted and time.monotonic() < until_s and not ended.is_set():
        await asyncio.sleep(LOOK_S)
        tell("done", record.lines)


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
