"""What a client writes is what a dispatcher reads; what a dispatcher would refuse a client refuses first."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.command import Cancel, Code, Discard, InvalidTask, Redrive, Rejection, Reschedule, Submit
from minutewheel.broker.compose import Composer, Submission
from minutewheel.broker.limits import Limits
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.store.record import Retry

pytestmark = pytest.mark.pure

TOPICS = Topics("mine")
COMPOSER = Composer(TOPICS)
NOW_MS = 1_790_000_000_000
DUE_MS = 1_796_115_600_000


def read(message: Message) -> list[Any]:
    assert message.topic == TOPICS.submit
    assert message.partition is not None
    record = Record(message.topic, message.partition, 5, NOW_MS, message.key, message.value, message.headers)
    return Decoder(topics=TOPICS).decode(record, message.partition, 1)


def test_every_argument_arrives() -> None:
    submission = Submission(
        id="a/b",
        queue="mail",
        payload=b"\x00\xff",
        tenant="acme",
        due="2026-12-01T09:00:00Z",
        headers={"h": "t", "b": b"\xff", "n": None},
        priority=1,
        max_attempts=9,
        retry=Retry(5, 1.5, 50),
        timeout_ms=6,
        expires=DUE_MS + 1,
        on_conflict="keep",
        receipt="mark",
    )
    message = COMPOSER.submit(submission)
    (command,) = read(message)
    assert message.key == b"acme/a/b"
    assert command == Submit(
        at=command.at,
        key="acme/a/b",
        digest=command.digest,
        queue="mail",
        due_ms=DUE_MS,
        payload=b"\x00\xff",
        headers=(("h", b"t"), ("b", b"\xff"), ("n", None)),
        priority=1,
        max_attempts=9,
        retry=Retry(5, 1.5, 50),
        timeout_ms=6,
        expires_ms=DUE_MS + 1,
        on_conflict="keep",
        receipt="mark",
    )


def test_a_delay_counts_from_the_record_although_it_was_checked_before() -> None:
    (command,) = read(COMPOSER.submit(Submission(id="a", queue="q", delay_ms=7, expires=NOW_MS + 8)))
    assert (command.due_ms, command.key) == (NOW_MS + 7, "default/a")


def test_the_other_ops() -> None:
    (command,) = read(COMPOSER.cancel("acme", "x", receipt="r"))
    assert command == Cancel(at=command.at, key="acme/x", receipt="r")
    (command,) = read(COMPOSER.discard("default", "x"))
    assert command == Discard(at=command.at, key="default/x")
    (command,) = read(COMPOSER.reschedule("acme", "x", due=DUE_MS))
    assert command == Reschedule(at=command.at, key="acme/x", due_ms=DUE_MS)
    (command,) = read(COMPOSER.redrive("acme", "x", delay_ms=3))
    assert command == Redrive(at=command.at, key="acme/x", due_ms=NOW_MS + 3)
    (command,) = read(COMPOSER.redrive("acme", "x"))
    assert command == Redrive(at=command.at, key="acme/x", due_ms=NOW_MS)


BAD: list[tuple[dict[str, Any], Code, str]] = [
    ({"id": "\ud800"}, Code.BAD_ID, "id"),
    ({"id": ""}, Code.BAD_ID, "id"),
    ({"id": 5}, Code.BAD_ID, "id"),
    ({"tenant": "a b"}, Code.BAD_TENANT, "tenant"),
    ({"queue": "q\n"}, Code.BAD_QUEUE, "queue"),
    ({"due": 1_796_115_600}, Code.DUE_IN_SECONDS, "due"),
    ({"due": 2**70}, Code.BAD_DUE, "due"),
    ({"due": 1.5}, Code.BAD_DUE, "due"),
    ({"due": None}, Code.MISSING_FIELD, "due"),
    ({"delay_ms": 5}, Code.DUE_AND_DELAY, "delay_ms"),
    ({"payload": b"x" * 65_537}, Code.PAYLOAD_TOO_LARGE, "payload"),
    ({"payload": "text"}, Code.BAD_VALUE, "payload"),
    ({"headers": {"mw_id": "x"}}, Code.BAD_VALUE, "headers"),
    ({"headers": {"a": "\udfff"}}, Code.BAD_VALUE, "headers"),
    ({"headers": {"a": 5}}, Code.BAD_VALUE, "headers"),
    ({"headers": {"a": "x" * 9_000}}, Code.HEADERS_TOO_LARGE, "headers"),
    ({"priority": 9}, Code.BAD_VALUE, "priority"),
    ({"priority": "1"}, Code.BAD_VALUE, "priority"),
    ({"receipt": object()}, Code.BAD_VALUE, "receipt"),
    ({"on_conflict": "merge"}, Code.BAD_VALUE, "on_conflict"),
    ({"retry": Retry(0)}, Code.BAD_VALUE, "retry"),
]


@pytest.mark.parametrize(("changes", "code", "field"), BAD, ids=lambda part: repr(part)[:30])
def test_a_client_refuses_what_a_dispatcher_would(changes: dict[str, Any], code: Code, field: str) -> None:
    arguments: dict[str, Any] = {"id": "a", "queue": "q", "due": DUE_MS, **changes}
    with pytest.raises(InvalidTask) as raised:
        COMPOSER.item(Submission(**arguments))
    assert (raised.value.code, raised.value.field) == (code, field)


def test_ops_are_refused_too() -> None:
    bad: list[Callable[[], Message]] = [
        lambda: COMPOSER.cancel("acme", ""),
        lambda: COMPOSER.discard("a b", "x"),
        lambda: COMPOSER.reschedule("acme", "x"),
        lambda: COMPOSER.redrive("acme", "x", due=5),
    ]
    for ask in bad:
        with pytest.raises(InvalidTask):
            ask()


@given(st.lists(st.tuples(st.text("abc\u00e9", min_size=1, max_size=3), st.binary(max_size=300))), st.integers(1, 700))
def test_batches_are_of_one_shard_and_keep_the_order_within_a_key(
    tasks: list[tuple[str, bytes]], bytes_max: int
) -> None:
    composer = Composer(TOPICS, Limits(batch_items=5))
    items = [composer.item(Submission(id=name, queue="q", due=DUE_MS, payload=data)) for name, data in tasks]
    read_back: dict[str, list[bytes]] = {}
    for message in composer.batches(items, bytes_max):
        commands = read(message)
        assert len(commands) <= 5
        assert message.value is not None
        assert len(commands) == 1 or len(message.value) <= bytes_max + 3
        for command in commands:
            assert isinstance(command, Submit), "every item is of the partition's shard"
            read_back.setdefault(command.key, []).append(command.payload)
    expected: dict[str, list[bytes]] = {}
    for name, data in tasks:
        expected.setdefault(f"default/{name}", []).append(data)
    assert read_back == expected


def test_lines_of_json_go_as_they_stand() -> None:
    lines = [json.dumps({"id": f"{n}", "queue": "q", "delay_ms": n}, indent=1).encode() for n in range(200)]
    items = [COMPOSER.json_item(line) for line in lines]
    assert [item.value for item in items] == lines
    messages = COMPOSER.batches(items)
    assert len(messages) == len({shard_of(f"default/{n}") for n in range(200)})
    commands = [command for message in messages for command in read(message)]
    assert {command.key for command in commands} == {f"default/{n}" for n in range(200)}


def test_a_line_without_an_id_gets_one_from_its_place() -> None:
    item = COMPOSER.json_item(b'{"queue": "q", "delay_ms": 1}')
    assert item.key == ""
    ((decoded,),) = [read(message) for message in COMPOSER.batches([item])]
    assert not isinstance(decoded, Rejection)
    assert decoded.key == f"default/{item.shard}-1-5-0"


def test_bad_lines() -> None:
    for line, code in (
        (b"", Code.EMPTY),
        (b"{", Code.NOT_DECODABLE),
        (b"[]", Code.NOT_AN_OBJECT),
        (b"{}", Code.MISSING_FIELD),
    ):
        with pytest.raises(InvalidTask) as raised:
            COMPOSER.json_item(line)
        assert raised.value.code is code
