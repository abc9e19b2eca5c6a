import io
import json
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import Code, InvalidTask, Submit
from minutewheel.broker.compose import Composer
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.port import Produced
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Message, Record
from minutewheel.console import lines
from minutewheel.console.lines import BadLine, Line, Totals, read_lines, submit_lines

GOOD = {"queue": "mail", "delay_ms": 1}


class Shelf:
    """A broker that keeps what it is given, or refuses records in which a text stands."""

    def __init__(self, refuses: bytes = b"\x00") -> None:
        self.messages: list[Message] = []
        self.refuses = refuses

    async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
        self.messages += messages
        return [BrokerError("full") if self.refuses in (m.value or b"") else Produced(0, 0, 0) for m in messages]

    def keys(self) -> list[str]:
        """The keys of all submissions, shard after shard."""
        found = []
        for message in self.messages:
            assert message.partition is not None
            record = Record(message.topic, message.partition, 0, 0, message.key, message.value, message.headers)
            decoded = Decoder().decode(record, message.partition, 1)
            found += [what.key for what in decoded if isinstance(what, Submit)]
            assert len(decoded) == len([what for what in decoded if isinstance(what, Submit)])
        return found


async def check(name: str) -> None:
    if name == "unheard-of":
        raise InvalidTask(Code.UNKNOWN_QUEUE, "no such queue", "queue")


async def submit(content: bytes, shelf: Shelf) -> tuple[Totals, list[BadLine]]:
    bad: list[BadLine] = []
    chunks = read_lines(io.BytesIO(content), 1_000)
    totals = await submit_lines(chunks, Composer(), shelf, check, refused=bad.append, told=lambda _: None)
    return totals, bad


def line(**fields: object) -> bytes:
    return json.dumps({**GOOD, **fields}).encode()


async def test_good_lines_go_and_bad_ones_are_named() -> None:
    shelf = Shelf()
    content = b"\n".join(
        [
            b"\xef\xbb\xbf" + line(id="first"),
            b"{",
            b"  ",
            line(id="no-due", delay_ms=-1),
            line(id="unheard", queue="unheard-of"),
            b'{"id": "long", "payload": "' + b"x" * 2_000 + b'"}',
            line(id="Zu\u0308rich"),
            b"\xff",
            line(id="last") + b"\r",
        ]
    )
    totals, bad = await submit(content, shelf)
    assert [(one.line, one.code) for one in bad] == [
        (2, "not_decodable"),
        (4, "bad_due"),
        (5, "unknown_queue"),
        (6, "payload_too_large"),
        (7, "bad_id"),
        (8, "not_decodable"),
    ]
    assert sorted(shelf.keys()) == ["default/first", "default/last"]
    assert (totals.lines, totals.accepted, totals.refused, totals.failed, totals.last_line) == (8, 2, 6, 0, 9)


async def test_what_the_broker_does_not_take_is_named_too() -> None:
    totals, bad = await submit(b"\n".join([line(id="good"), line(id="unlucky")]), Shelf(b"unlucky"))
    assert bad == [BadLine(2, "not_accepted", "full")]
    assert (totals.accepted, totals.failed) == (1, 1)


@given(st.lists(st.sampled_from([b"", b" ", b"{}", b"[", b"x" * 70, b'{"id": "a"}']), max_size=40), st.integers(1, 4))
async def test_each_line_is_answered_for(content: list[bytes], chunk_lines: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK_LINES", chunk_lines)
        read = [one async for chunk in read_lines(io.BytesIO(b"\n".join(content)), 64) for one in chunk]
    filled = [(number, text.strip()) for number, text in enumerate(content, 1) if text.strip()]
    assert read == [Line(number, text if len(text) <= 64 else None) for number, text in filled]


async def test_no_more_is_read_than_was_acknowledged() -> None:
    """Back-pressure: a chunk is asked for only when the one before is done."""
    order: list[str] = []

    async def chunks() -> AsyncIterator[list[Line]]:
        for number in range(1, 4):
            order.append(f"read {number}")
            yield [Line(number, line(id=f"t{number}"))]

    class Slow(Shelf):
        async def produce(self, messages: Sequence[Message]) -> list[Produced | BrokerError]:
            order.append("acknowledged")
            return await super().produce(messages)

    await submit_lines(chunks(), Composer(), Slow(), check, refused=lambda _: None, told=lambda _: order.append("told"))
    assert order == [
        "read 1",
        "acknowledged",
        "told",
        "read 2",
        "acknowledged",
        "told",
        "read 3",
        "acknowledged",
        "told",
    ]
