"""How do the lines of a file become submissions, without ever holding more than a few of them?

Lines are taken in chunks; each chunk is checked line by line, sent in batch records, and acknowledged before the next
is read: a slow broker slows the reading down. A line that is refused is told with its number, and stops nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from io import BufferedIOBase
from threading import Thread
from typing import Protocol, TypeVar, TypeVarTuple

from msgspec import UNSET, Struct, UnsetType
from msgspec import json as msgspec_json

from ..broker.command import Code, InvalidTask
from ..broker.compose import Composer, Item
from ..broker.errors import BrokerError
from ..broker.port import Produced
from ..broker.wire import Message

T = TypeVar("T")
U = TypeVar("U")
Args = TypeVarTuple("Args")

CHUNK_LINES = 1_000
CHUNK_BYTES = 400_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NOT_ACCEPTED = "not_accepted"
"""The code of a line that the broker did not acknowledge: it may stand in the log all the same."""


class Line(Struct, frozen=True, gc=False):
    """A line of the input, its number from 1. `content` is None if it was longer than is read."""

    number: int
    content: bytes | None


class BadLine(Struct, frozen=True, gc=False):
    """A line that was not accepted, and why: a rejection code of docs/submitting.md, or `not_accepted`."""

    line: int
    code: str
    message: str
    field: str = ""


class Totals(Struct):
    """What became of the lines so far; `lines` counts those that are not empty."""

    lines: int = 0
    accepted: int = 0
    refused: int = 0
    failed: int = 0
    bytes: int = 0
    last_line: int = 0


class Producer(Protocol):
    """What of a broker is needed."""

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]: ...


class _Named(Struct):
    queue: str | UnsetType = UNSET


_queue_of = msgspec_json.Decoder(_Named).decode


async def read_lines(file: BufferedIOBase, bytes_max: int) -> AsyncIterator[list[Line]]:
    """The lines that are not empty, in chunks; reading waits in a thread."""
    number = 0
    while True:
        chunk, number, more = await _apart(_read_chunk, file, number, bytes_max)
        if chunk:
            yield chunk
        if not more:
            return


async def _apart(read: Callable[[*Args], T], *args: *Args) -> T:
    """Read in a thread that nobody waits for at the end: an interrupt must not wait for a line that never comes."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[U], None], value: U) -> None:
        if not future.done():
            set_(value)

    def run() -> None:
        with suppress(RuntimeError):  # the loop is over: nobody waits any more
            try:
                answer = read(*args)
            except Exception as error:  # noqa: BLE001 - whoever waits gets it
                loop.call_soon_threadsafe(settle, future.set_exception, error)
            else:
                loop.call_soon_threadsafe(settle, future.set_result, answer)

    Thread(target=run, daemon=True, name="minutewheel-lines").start()
    return await future


def _read_chunk(file: BufferedIOBase, number: int, bytes_max: int) -> tuple[list[Line], int, bool]:
    chunk: list[Line] = []
    size = 0
    while len(chunk) < CHUNK_LINES and size < CHUNK_BYTES:
        content = file.readline(bytes_max + 2)
        if not content:
            return chunk, number, False
        number += 1
        whole = content.endswith(b"\n") or len(content) <= bytes_max
        if not whole:
            _skip_line(file)
        if number == 1:
            content = content.removeprefix(BYTE_ORDER_MARK)
        if stripped := content.strip():
            chunk.append(Line(number, stripped if whole else None))
            size += len(stripped)
    return chunk, number, True


def _skip_line(file: BufferedIOBase) -> None:
    while (rest := file.readline(65_536)) and not rest.endswith(b"\n"):
        pass


async def submit_lines(
    chunks: AsyncIterator[list[Line]],
    composer: Composer,
    broker: Producer,
    check_queue: Callable[[str], Awaitable[None]],
    *,
    refused: Callable[[BadLine], None],
    told: Callable[[Totals], None],
) -> Totals:
    """Submit all; `refused` hears of each bad line, in their order within a chunk, `told` of each chunk's end."""
    totals = Totals()
    async for chunk in chunks:
        items, bad = await _checked(chunk, composer, check_queue)
        failed = await _send(items, composer, broker)
        for line in sorted([*bad, *failed], key=lambda line: line.line):
            refused(line)
        totals.lines += len(chunk)
        totals.accepted += len(items) - len(failed)
        totals.refused += len(bad)
        totals.failed += len(failed)
        totals.bytes += sum(len(line.content or b"") + 1 for line in chunk)
        totals.last_line = chunk[-1].number
        told(totals)
    return totals


async def _checked(
    chunk: Sequence[Line], composer: Composer, check_queue: Callable[[str], Awaitable[None]]
) -> tuple[list[tuple[int, Item]], list[BadLine]]:
    items: list[tuple[int, Item]] = []
    bad: list[BadLine] = []
    for line in chunk:
        try:
            content = _whole(line)
            item = composer.json_item(content)
            queue = _queue_of(content).queue
            if queue is not UNSET:
                await check_queue(queue)
            items.append((line.number, item))
        except InvalidTask as invalid:
            bad.append(BadLine(line.number, invalid.code, invalid.message, invalid.field))
    return items, bad


def _whole(line: Line) -> bytes:
    if line.content is None:
        raise InvalidTask(Code.PAYLOAD_TOO_LARGE, "the line is longer than any task may be")
    return line.content


async def _send(items: Sequence[tuple[int, Item]], composer: Composer, broker: Producer) -> list[BadLine]:
    """The lines that were not acknowledged. Each shard's items go in records of their own, in their order."""
    groups: dict[int, list[tuple[int, Item]]] = {}
    for number, item in items:
        groups.setdefault(item.shard, []).append((number, item))
    messages: list[Message] = []
    numbers: list[list[int]] = []
    for group in groups.values():
        for message in composer.batches(item for _, item in group):
            messages.append(message)
            numbers.append([number for number, _ in group])
    if not messages:
        return []
    failed: dict[int, str] = {}
    for answer, lines in zip(await broker.produce(messages), numbers, strict=True):
        if isinstance(answer, BrokerError):
            failed.update(dict.fromkeys(lines, str(answer)))
    return [BadLine(number, NOT_ACCEPTED, message) for number, message in failed.items()]
