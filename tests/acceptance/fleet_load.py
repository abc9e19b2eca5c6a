"""How is a fleet of real processes kept under a steady load, and what is known of each task in the end?

`FleetProcesses` starts and ends dispatchers and workers. `Load` submits at a steady rate with a peak at each full
minute, and keeps what the broker acknowledged. `deliveries` reads back all that was published, `rows`
what the handlers wrote. Nothing here asks the product what it thinks it did.
"""

import asyncio
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
from confluent_kafka import Consumer, TopicPartition
from minutewheel import Accepted, AsyncClient, Submission

HERE = Path(__file__).parent
QUEUE = "effects"
TICK_S = 0.1
AHEAD_MS = (2_000, 6_000)
SLOW_MS = 600
SLOW_SHARE = 0.04
"""Handlers that take so long: a worker that is killed has some of them in hand."""
MINUTE_MS = 60_000
SHARDS = 64
START_S = 60
COMMAND = "from minutewheel.console.cli import main; main()"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Delivery(NamedTuple):
    """One record of the due topic; the broker's time of its arrival."""

    filing: tuple[int, int, int]
    key: str
    due_ms: int
    at_ms: int


class Acceptance(NamedTuple):
    """What the submitter asked for, and when the broker had it."""

    due_ms: int
    at_ms: int


class FleetProcesses:
    """Dispatchers and workers of one configuration, each a process with a log of its own, all ended by `close`."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.folder = folder
        self.effects = folder / "effects.sqlite"
        self._config = ["--config", str(config)]
        self._all: list[asyncio.subprocess.Process] = []
        self._started = 0
        self.members: dict[int, str] = {}
        self.logs: dict[int, Path] = {}

    async def dispatcher(self) -> asyncio.subprocess.Process:
        """One that has joined the fleet."""
        process = await self._start(str(HERE / "fleet_dispatcher.py"), "dispatcher", "--json", *self._config)
        assert process.stdout
        line = await asyncio.wait_for(process.stdout.readline(), START_S)
        assert line, self.logs[process.pid].read_text()[-3_000:]
        self.members[process.pid] = msgspec.json.decode(line)["member"]
        return process

    async def worker(self) -> asyncio.subprocess.Process:
        return await self._start("-c", COMMAND, "worker", "fleet_app:app", "--json", *self._config)

    async def _start(self, *arguments: str) -> asyncio.subprocess.Process:
        environment = {**os.environ, "EFFECTS": str(self.effects), "PYTHONPATH": str(HERE)}
        self._started += 1
        log = self.folder / f"{self._started}.log"
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=out, env=environment
            )
        self._all.append(process)
        self.logs[process.pid] = log
        return process

    async def close(self) -> None:
        for process in self._all:
            if process.returncode is None:
                process.kill()
                await process.wait()


class Load:
    """A submitter; `accepted` is what the broker acknowledged."""

    def __init__(self, client: AsyncClient, rate: int, peak: int, seed: int) -> None:
        self.accepted: dict[str, Acceptance] = {}
        self.refused = 0
        self._client = client
        self._rate = rate
        self._peak = peak
        self._draw = random.Random(seed)
        self._count = 0
        self._sending: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Submit until `stop`; return when each submission is acknowledged."""
        next_s, peaked = time.monotonic(), now_ms() // MINUTE_MS + 1
        while not stop.is_set():
            self._later([self._one(now_ms() + self._draw.randint(*AHEAD_MS)) for _ in range(int(self._rate * TICK_S))])
            if now_ms() > peaked * MINUTE_MS + MINUTE_MS - 2 * AHEAD_MS[1]:
                peaked += 1
                self._later([self._one(peaked * MINUTE_MS) for _ in range(self._peak)])
            next_s += TICK_S
            await asyncio.sleep(max(0, next_s - time.monotonic()))
        await asyncio.gather(*self._sending)

    def _one(self, due_ms: int) -> Submission:
        self._count += 1
        takes_ms = SLOW_MS if self._draw.random() < SLOW_SHARE else 0
        return Submission(id=f"t{self._count}", queue=QUEUE, payload=b"%d" % takes_ms, due=due_ms)

    def _later(self, submissions: list[Submission]) -> None:
        task = asyncio.create_task(self._send(submissions))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, submissions: list[Submission]) -> None:
        """Until all are acknowledged: what was not is sent again under its id, as any submitter would."""
        while submissions:
            again: list[Submission] = []
            async for answer in self._client.submit_many(submissions):
                asked = submissions[answer.index]
                if isinstance(answer, Accepted):
                    assert isinstance(asked.due, int)
                    self.accepted[answer.key] = Acceptance(asked.due, answer.time_ms)
                else:
                    again.append(asked)
            self.refused += len(again)
            submissions = again
            if again:
                await asyncio.sleep(0.5)


def deliveries(bootstrap: str, topic: str) -> list[Delivery]:
    """All that was ever published for the queue, in the order of its partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "fault test", "enable.auto.commit": False})
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=20)[1] for p in range(SHARDS)}
    left = {p: end for p, end in ends.items() if end}
    consumer.assign([TopicPartition(topic, p, 0) for p in left])
    found: list[Delivery] = []
    until = time.monotonic() + 60
    while left:
        assert time.monotonic() < until, left
        for message in consumer.consume(5_000, 1.0):
            assert not message.error(), message.error()
            found.append(_delivery(message))
            if message.offset() + 1 >= ends[message.partition()]:
                left.pop(message.partition(), None)
    consumer.close()
    return found


def _delivery(message: object) -> Delivery:
    headers = dict(message.headers())  # type: ignore[attr-defined]
    filing = int(headers["mw_shard"]), int(headers["mw_minute"]), int(headers["mw_filing"])
    key = f"{headers['mw_tenant'].decode()}/{headers['mw_id'].decode()}"
    return Delivery(filing, key, int(headers["mw_due_ms"]), message.timestamp()[1])  # type: ignore[attr-defined]


def rows(file: Path, query: str) -> list[tuple[int | str, ...]]:
    connection = sqlite3.connect(file, timeout=30)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def logged(logs: Iterable[Path]) -> list[dict[str, object]]:
    """The lines of these logs that are JSON."""
    lines = (line for log in logs for line in log.read_bytes().splitlines())
    return [msgspec.json.decode(line) for line in lines if line.startswith(b"{")]
