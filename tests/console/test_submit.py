import json
from pathlib import Path
from typing import Any

import pytest
from minutewheel import InvalidTask
from minutewheel.broker.command import Submit
from minutewheel.broker.submission import Decoder
from minutewheel.console import submit
from minutewheel.console.exits import ExitCode, Failure
from minutewheel.wiring import Installation


def write(name: str, content: str | bytes) -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


async def submitted(installation: Installation) -> list[Submit]:
    """All that stands in the submit topic."""
    found: list[Submit] = []
    for partition in range(64):
        fetched = await installation.broker.fetch(installation.topics.submit, partition, 0, 1_000, 0)
        decoder = Decoder(installation.limits, installation.topics)
        for record in fetched.records:
            found += [what for what in decoder.decode(record, partition, 1) if isinstance(what, Submit)]
    return found


async def one(desk: Any, **flags: Any) -> Any:
    call, screen = desk.call()
    assert await submit.submit(call, **flags) == ExitCode.OK
    return screen.documents[0]


async def test_every_flag_reaches_the_task(desk: Any, installation: Installation) -> None:
    answer = await one(
        desk,
        queue="mail",
        id_="order-1",
        tenant="acme",
        at="2099-01-01T00:00:00Z",
        payload='{"b": 1}',
        header=["trace=a=b"],
        priority=1,
        max_attempts=7,
        timeout_="2m",
        expires="2099-01-02T00:00:00Z",
        on_conflict="keep",
    )
    assert answer["key"] == "acme/order-1"
    (task,) = await submitted(installation)
    assert (task.key, task.queue, task.payload) == ("acme/order-1", "mail", b'{"b": 1}')
    assert (task.due_ms, task.expires_ms) == (4_070_908_800_000, 4_070_995_200_000)
    assert (task.priority, task.max_attempts, task.timeout_ms) == (1, 7, 120_000)
    assert (task.headers, task.on_conflict) == ((("trace", b"a=b"),), "keep")


async def test_a_delay_counts_from_the_submission_and_no_time_is_now(desk: Any, installation: Installation) -> None:
    for id_, in_, delay_ms in (("a", "1h30m", 5_400_000), ("b", None, 0)):
        answer = await one(desk, queue="mail", id_=id_, in_=in_)
        (task,) = [task for task in await submitted(installation) if task.key == answer["key"]]
        assert task.due_ms == answer["accepted_ms"] + delay_ms


async def test_a_payload_from_a_file_stays_as_it_is(desk: Any, installation: Installation) -> None:
    write("payload.bin", b"\x00\xff no json")
    await one(desk, queue="mail", payload="@payload.bin")
    (task,) = await submitted(installation)
    assert task.payload == b"\x00\xff no json"


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"queue": "mail", "payload": "hello"},
        {"queue": "mail", "in_": "5s", "due_ms": 1},
        {"queue": "mail", "in_": "soon"},
        {"queue": "mail", "header": ["no value"]},
        {"queue": "mail", "file": Path("x")},
    ],
)
async def test_what_makes_no_sense_is_a_matter_of_usage(desk: Any, flags: dict[str, Any]) -> None:
    with pytest.raises(Failure) as refused:
        await submit.submit(desk.call()[0], **flags)
    assert refused.value.code is ExitCode.USAGE
    assert not desk.folder.exists()


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ({"id_": "Zu\u0308rich"}, "bad_id"),
        ({"tenant": "Z\u00fcrich"}, "bad_tenant"),
        ({"due_ms": 1_767_225_600}, "due_in_seconds"),
        ({"at": "2099-01-01T00:00:00"}, "bad_due"),
        ({"priority": 4}, "bad_value"),
        ({"on_conflict": "shrug"}, "bad_value"),
    ],
)
async def test_what_no_dispatcher_would_take_is_not_sent(
    desk: Any, installation: Installation, flags: dict[str, Any], code: str
) -> None:
    with pytest.raises(InvalidTask) as refused:
        await submit.submit(desk.call()[0], queue="mail", **flags)
    assert refused.value.code == code
    assert await submitted(installation) == []


async def test_a_file_of_tasks(desk: Any, installation: Installation) -> None:
    good = [json.dumps({"id": f"t{n}", "queue": "mail", "delay_ms": n}) for n in range(2_500)]
    write("tasks.ndjson", "\n".join([*good[:1_700], '{"id": "[red]"}', *good[1_700:]]) + "\n")
    call, screen = desk.call()
    assert await submit.submit(call, file=Path("tasks.ndjson")) == ExitCode.REFUSED
    bad, totals = screen.documents
    assert (bad["line"], bad["code"], bad["field"]) == (1_701, "missing_field", "queue")
    assert totals == {"submitted": 2_501, "accepted": 2_500, "refused": 1, "not_accepted": 0}
    assert sorted(task.key for task in await submitted(installation)) == sorted(f"default/t{n}" for n in range(2_500))
    assert "no dispatcher serves" in screen.err.getvalue()


async def test_a_queue_that_nobody_declared_is_refused_where_they_must_be(desk: Any) -> None:
    desk.flags = {"declare_queues": False, "queues": "mail"}
    write("tasks.ndjson", '{"queue": "mail", "delay_ms": 1}\n{"queue": "other", "delay_ms": 1}\n')
    call, screen = desk.call()
    assert await submit.submit(call, file=Path("tasks.ndjson")) == ExitCode.REFUSED
    assert [(one.get("line"), one.get("code")) for one in screen.documents] == [(2, "unknown_queue"), (None, None)]
    with pytest.raises(InvalidTask):
        await submit.submit(desk.call()[0], queue="other")


async def test_the_answer_of_the_dispatcher(desk: Any, served: Installation) -> None:
    again = [("accepted", 0), ("duplicate", 0)]
    for answer, code in again:
        call, screen = desk.call()
        assert await submit.submit(call, queue="mail", id_="x", in_="1h", answer=True) == code
        assert screen.documents[0]["answer"] == answer
    call, screen = desk.call()
    assert await submit.submit(call, queue="mail", id_="x", in_="2h", answer=True) == ExitCode.REFUSED
    assert screen.documents[0]["answer"] == "id_conflict"
