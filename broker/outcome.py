"""What does a worker say of one attempt, and how does it travel?

An outcome is a complete cause: one that is not *done* carries the delivered record back (payload, headers, options,
starts so far), so a retry or a dead letter is written from the outcome alone. It stands in the value, not in
headers, so that coming back never makes a task larger than the broker takes. A worker without our library names the due
record instead (`due_at`), and then sends little more than its headers, in JSON; there numbers may be text, as the
headers have them, and bytes are base64.

The firing path says in the same form what it decides itself: expired, or unpublishable.
"""

from math import inf
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..store.position import Log, pack_position
from ..store.record import Headers, Options, decode_headers, decode_options, encode_headers, unpack
from ..store.task import SHARDS
from .command import Code, InvalidTask, Rejection, Standing
from .due import FILING_LIMIT, NO_OPTIONS, Delivered
from .due_time import LAST_MS
from .form import NAME
from .media import CONTENT_TYPE, MSGPACK_NAMES, media_type_of
from .partitioner import shard_of
from .plain import UNREADABLE, unreadable
from .wire import JSON, MSGPACK, Message, Record, Topics

OutcomeKind = Literal["done", "failed", "snoozed", "expired", "unpublishable"]
REASON_BYTES = 4_096
STARTS_MAX = 1 << 31
KEY_MAX = 1_024
BOUNDS = (
    ("shard", 0, SHARDS - 1),
    ("minute", 0, LAST_MS),
    ("filing", 0, FILING_LIMIT - 1),
    ("origin", 0, FILING_LIMIT - 1),
    ("starts", 0, STARTS_MAX),
    ("attempt", 1, (1 << 16) - 1),
    ("due_ms", 0, LAST_MS),
    ("priority", 1, 3),
    ("expires_ms", 0, LAST_MS),
)


class Outcome(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What became of one attempt (`filing`).

    `starts` counts the handler's starts of this task so far, earlier attempts included. `retryable` and `delay_ms`
    (the handler's own wish, else None) concern failed and snoozed ones. `payload` is None where the record is not
    carried back; then `due_at` = (topic, partition, offset) says where it stands, unless the kind is done.
    """

    kind: OutcomeKind
    key: str
    shard: int
    minute: int
    filing: int
    origin: int
    starts: int = 0
    reason: str = ""
    retryable: bool = True
    delay_ms: int | None = None
    attempt: int = 1
    due_ms: int = 0
    queue: str = ""
    priority: int = 2
    expires_ms: int = 0
    options: bytes = NO_OPTIONS
    headers: Headers = ()
    payload: bytes | None = None
    due_at: tuple[str, int, int] | None = None

    @property
    def task(self) -> Options:
        return decode_options(self.options)


class Reported(Struct, frozen=True, gc=False):
    """An outcome, and where it stood: its position makes the filing of the retry, its time the retry's due time."""

    at: Standing
    outcome: Outcome


class WrongShard(Struct, frozen=True, gc=False):
    """A good outcome in another shard's partition: to be produced again, to the right one."""

    at: Standing
    shard: int
    message: Message


_encode = msgspec.msgpack.Encoder().encode
_from_msgpack = msgspec.msgpack.Decoder(Outcome).decode
_from_json = msgspec.json.Decoder(Outcome, strict=False).decode


def outcome_of(
    delivered: Delivered,
    kind: OutcomeKind,
    *,
    starts: int,
    reason: str = "",
    retryable: bool = True,
    delay_ms: int | None = None,
) -> Outcome:
    """What a worker says of a due record; one that is done carries back no more than its receipts need."""
    done = kind == "done"
    return Outcome(
        kind=kind,
        key=delivered.key,
        shard=delivered.shard,
        minute=delivered.minute,
        filing=delivered.filing,
        origin=delivered.origin,
        starts=starts,
        reason=cut(reason),
        retryable=retryable,
        delay_ms=delay_ms,
        attempt=delivered.attempt,
        due_ms=delivered.due_ms,
        queue=delivered.queue,
        priority=delivered.priority,
        expires_ms=delivered.expires_ms,
        options=delivered.options,
        headers=() if done else delivered.headers,
        payload=None if done else delivered.payload,
    )


def outcome_of_filing(
    kind: OutcomeKind, shard: int, minute: int, due_ms: int, filing: int, record: bytes, reason: str
) -> Outcome:
    """What the firing path says of a filing that it can't publish, from its record as filed."""
    filed = unpack(record)
    return Outcome(
        kind=kind,
        key=filed.key,
        shard=shard,
        minute=minute,
        filing=filing,
        origin=filed.origin,
        starts=decode_options(filed.options).starts,
        reason=cut(reason),
        retryable=False,
        attempt=filed.attempt,
        due_ms=due_ms,
        queue=filed.queue,
        priority=filed.priority,
        expires_ms=filed.expires_ms,
        options=filed.options,
        headers=decode_headers(filed.headers),
        payload=filed.payload,
    )


def outcome_message(topics: Topics, outcome: Outcome) -> Message:
    headers: Headers = ((CONTENT_TYPE, MSGPACK.encode()),)
    return Message(topics.outcomes, outcome.key.encode(), _encode(outcome), headers, outcome.shard)


def decode_outcome(record: Record, shard: int, incarnation: int, topics: Topics) -> Reported | Rejection | WrongShard:
    """Read a record of `outcomes`; nothing else is answered, and nothing raised, whatever it holds."""
    try:
        at = Standing(Log.OUTCOMES, pack_position(incarnation, record.offset), record.time_ms)
    except OverflowError as error:
        return Rejection(Standing(Log.OUTCOMES, -1, record.time_ms), Code.NO_POSITION, str(error), "offset")
    try:
        outcome = _read(record)
        _check(outcome, topics)
    except InvalidTask as invalid:
        return Rejection(at, invalid.code, invalid.message, invalid.field)
    if outcome.shard == shard:
        return Reported(at, outcome)
    again = Message(topics.outcomes, outcome.key.encode(), record.value, record.headers, outcome.shard)
    return WrongShard(at, outcome.shard, again)


def cut(reason: str) -> str:
    """A reason of bounded size and of whole characters; a worker's long trace must not cost it its outcome."""
    data = reason.encode(errors="replace")
    return data[:REASON_BYTES].decode(errors="ignore")


def _read(record: Record) -> Outcome:
    if not record.value:
        raise InvalidTask(Code.EMPTY, "the record has no value")
    form = media_type_of(record.headers)
    if form != JSON and form not in MSGPACK_NAMES:
        raise InvalidTask(Code.UNKNOWN_CONTENT_TYPE, "an outcome is JSON or msgpack", CONTENT_TYPE)
    try:
        outcome = (_from_json if form == JSON else _from_msgpack)(record.value)
    except UNREADABLE as error:
        invalid = unreadable(error)
        code = Code.BAD_VALUE if invalid.code is Code.NOT_AN_OBJECT else invalid.code
        raise InvalidTask(code, invalid.message) from None
    return outcome if len(outcome.reason) <= REASON_BYTES // 4 else replace(outcome, reason=cut(outcome.reason))


def _check(outcome: Outcome, topics: Topics) -> None:
    """Bounds of the layouts, not of the door: what was once accepted is never too large when it comes back."""
    for name, low, high in BOUNDS:
        if not low <= getattr(outcome, name) <= high:
            raise InvalidTask(Code.BAD_VALUE, f"{name} is not in {low} to {high}", name)
    if outcome.delay_ms is not None and not 0 <= outcome.delay_ms <= LAST_MS:
        raise InvalidTask(Code.BAD_VALUE, f"delay_ms is not in 0 to {LAST_MS}", "delay_ms")
    tenant, slash, task_id = outcome.key.partition("/")
    if not (slash and task_id and NAME.fullmatch(tenant)) or len(outcome.key) > KEY_MAX:
        raise InvalidTask(Code.BAD_ID, "the key is <tenant>/<id>", "key")
    if shard_of(outcome.key) != outcome.shard:
        raise InvalidTask(Code.WRONG_SHARD, f"the task is of shard {shard_of(outcome.key)}", "shard")
    if outcome.options != NO_OPTIONS:
        _check_options(outcome.options)
    if outcome.payload is not None:
        _check_carried(outcome)
    elif outcome.due_at is not None:
        _check_due_at(outcome.due_at, topics)
    elif outcome.kind != "done":
        raise InvalidTask(Code.MISSING_FIELD, "it carries no record back, nor says where it is (due_at)", "payload")


def _check_options(data: bytes) -> None:
    try:
        options = decode_options(data)
    except UNREADABLE as error:
        raise InvalidTask(Code.BAD_VALUE, f"options: {error}", "options") from None
    retry = options.retry
    good = 1 <= options.max_attempts < 1 << 16 and 0 <= options.starts <= STARTS_MAX and len(data) < 1 << 16
    good = good and 0 <= options.timeout_ms <= LAST_MS and 1 <= retry.base_ms <= retry.cap_ms <= LAST_MS
    if not (good and 1.0 <= retry.factor < inf):
        raise InvalidTask(Code.BAD_VALUE, "the options are out of their bounds", "options")


def _check_carried(outcome: Outcome) -> None:
    if NAME.fullmatch(outcome.queue) is None:
        raise InvalidTask(Code.BAD_QUEUE, "a carried record names its queue", "queue")
    if outcome.headers and len(encode_headers(outcome.headers)) >= 1 << 16:
        raise InvalidTask(Code.HEADERS_TOO_LARGE, "the headers have more than 65,535 bytes", "headers")


def _check_due_at(due_at: tuple[str, int, int], topics: Topics) -> None:
    topic, partition, offset = due_at
    if not (topic.startswith(topics.due("")) and 0 <= partition < 1 << 31 and 0 <= offset < FILING_LIMIT):
        raise InvalidTask(Code.BAD_VALUE, "due_at names no place on a due topic", "due_at")
