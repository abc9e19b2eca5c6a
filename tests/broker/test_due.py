"""The due record: what is filed goes out as it is, and comes back to the worker whole."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.due import NotDue, due_message, parse_due
from minutewheel.broker.wire import Record, Topics
from minutewheel.store.record import Filed, Headers, Options, Retry, encode_headers, encode_options, pack
from msgspec.structs import replace

pytestmark = pytest.mark.pure

TOPICS = Topics()
FILED = Filed(7, 4_611_686_018_427_387_904, 3, 2, 0, "acme/a/b:c", "mail", b"\x80", b"\x90", b'{"a": 1}')


def record_of(filed: Filed = FILED, **changes: Any) -> Record:
    message = due_message(TOPICS, 5, 29_935_260, 1_796_115_600_001, 2**63 - 1, pack(filed))
    assert message.partition is None
    return replace(Record(message.topic, 9, 77, 1, message.key, message.value, message.headers), **changes)


def test_a_plain_task_has_the_headers_that_are_promised_and_no_other() -> None:
    record = record_of()
    assert (record.topic, record.key, record.value) == ("minutewheel.due.mail", b"acme/a/b:c", b'{"a": 1}')
    assert record.headers == (
        ("mw_id", b"a/b:c"),
        ("mw_tenant", b"acme"),
        ("mw_due_ms", b"1796115600001"),
        ("mw_attempt", b"3"),
        ("mw_filing", b"9223372036854775807"),
        ("mw_shard", b"5"),
        ("mw_minute", b"29935260"),
        ("mw_idempotency_key", b"acme/a/b:c:4611686018427387904"),
    )


def test_the_submitters_headers_stand_first_and_ours_only_when_not_default() -> None:
    own: Headers = (("content-type", b"image/png"), ("a", None), ("a", b"\xff"))
    options = Options(max_attempts=9, retry=Retry(5, 1.5, 50), receipt="r")
    filed = replace(
        FILED, priority=1, expires_ms=9, options=encode_options(options), headers=encode_headers(own), payload=b""
    )
    record = record_of(filed)
    assert record.headers[:3] == own
    assert [name for name, _ in record.headers[-3:]] == ["mw_task", "mw_priority", "mw_expires_ms"]
    delivered = parse_due(record)
    assert (delivered.priority, delivered.expires_ms, delivered.headers, delivered.payload) == (1, 9, own, b"")
    assert delivered.task == options


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    tenant=st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    task_id=TEXT,
    queue=st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True),
    payload=st.binary(max_size=50),
    headers=st.lists(
        st.tuples(TEXT.filter(lambda name: not name.startswith("mw_")), st.one_of(st.none(), st.binary(max_size=9)))
    ).map(tuple),
    numbers=st.tuples(*[st.integers(0, high) for high in (63, 2**40, 2**47, 2**63 - 1, 2**62, 65_535, 2**47)]),
    priority=st.integers(1, 3),
    receipt=st.one_of(st.none(), TEXT),
)
def test_a_worker_reads_what_was_filed(
    tenant: str,
    task_id: str,
    queue: str,
    payload: bytes,
    headers: Headers,
    numbers: tuple[int, ...],
    priority: int,
    receipt: str | None,
) -> None:
    shard, minute, due_ms, filing, origin, attempt, expires_ms = numbers
    options = encode_options(Options(receipt=receipt))
    filed = Filed(
        1,
        origin,
        attempt,
        priority,
        expires_ms,
        f"{tenant}/{task_id}",
        queue,
        options,
        encode_headers(headers),
        payload,
    )
    message = due_message(TOPICS, shard, minute, due_ms, filing, pack(filed))
    delivered = parse_due(Record(message.topic, 1, 2, 3, message.key, message.value, message.headers))
    assert (delivered.key, delivered.tenant, delivered.id) == (f"{tenant}/{task_id}", tenant, task_id)
    assert (delivered.queue, delivered.payload, delivered.headers) == (queue, payload, headers)
    assert (delivered.shard, delivered.minute, delivered.due_ms) == (shard, minute, due_ms)
    assert (delivered.filing, delivered.origin, delivered.attempt) == (filing, origin, attempt)
    assert delivered.idempotency_key == f"{tenant}/{task_id}:{origin}"
    assert (delivered.priority, delivered.expires_ms, delivered.options) == (priority, expires_ms, options)


@pytest.mark.parametrize("name", [name for name, _ in record_of().headers])
def test_a_record_that_lacks_or_repeats_one_of_our_headers_is_none_of_ours(name: str) -> None:
    headers = record_of().headers
    for changed in (
        tuple(header for header in headers if header[0] != name),
        (*headers, (name, dict(headers)[name])),
        tuple((other, None if other == name else value) for other, value in headers),
        tuple((other, b"\xff" if other == name else value) for other, value in headers),
    ):
        with pytest.raises(NotDue, match=r"minutewheel.due.mail\[9\] 77"):
            parse_due(record_of(headers=changed))


def test_other_records_that_are_none_of_ours() -> None:
    headers = record_of().headers
    for changes in (
        {"topic": "minutewheel.submit"},
        {"value": None},
        {"headers": ()},
        {"headers": tuple((n, b"64" if n == "mw_shard" else v) for n, v in headers)},
        {"headers": tuple((n, b"9223372036854775808" if n == "mw_filing" else v) for n, v in headers)},
        {"headers": (*headers, ("mw_task", b"\xc1"))},
        {"headers": (*headers, ("mw_priority", b"x"))},
    ):
        with pytest.raises(NotDue):
            parse_due(record_of(**changes))


@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from([name for name, _ in record_of().headers] + ["mw_task"]), st.text(max_size=4)),
            st.one_of(st.none(), st.binary(max_size=9), st.sampled_from([b"5", b"acme", b"acme/5:5"])),
        )
    ).map(tuple)
)
def test_any_headers_are_read_or_refused(headers: Headers) -> None:
    with contextlib.suppress(NotDue):
        assert parse_due(record_of(headers=headers)).shard in range(64)
