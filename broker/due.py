"""What does a due task look like on `due.<queue>`, and how does a worker read it?

The value is the submitter's payload, untouched; the headers are the submitter's, then ours. This is the firing path:
a filed record is cut up without being decoded, for its parts are laid out so that they can be published as they are.

    mw_id, mw_tenant            the key of the task, in two
    mw_due_ms, mw_attempt       when it was due, and which attempt this is (1, 2, …)
    mw_filing                   the number of this attempt: what an outcome names, and what is run once
    mw_shard, mw_minute         where the filing stands; outcomes go to the partition `mw_shard`
    mw_idempotency_key          `<key>:<origin filing>`, the same over all attempts of one version of the task
    mw_task                     options in msgpack that an outcome carries back; left out when all are default
    mw_priority, mw_expires_ms  left out when default (2, never)
"""

import re
from functools import lru_cache
from typing import NoReturn

import msgspec
from msgspec import Struct

from ..store.record import HEAD, NO_HEADERS, Headers, Options, decode_headers, decode_options
from ..store.task import SHARDS
from .form import RESERVED
from .wire import Message, Record, Topics

NO_OPTIONS = b"\x80"
"""Options of which all are default, in msgpack."""
DUE_INFIX = ".due."
NUMBER = re.compile(rb"[0-9]{1,19}")
FILING_LIMIT = 1 << 63


class NotDue(Exception):
    """The record on a due topic is none of ours."""


class Delivered(Struct, frozen=True, gc=False, kw_only=True):
    """A due task as a worker gets it. `headers` are the submitter's; `options` is the msgpack of `mw_task`."""

    topic: str
    partition: int
    offset: int
    queue: str
    key: str
    tenant: str
    id: str
    due_ms: int
    attempt: int
    filing: int
    origin: int
    shard: int
    minute: int
    idempotency_key: str
    payload: bytes
    headers: Headers = ()
    options: bytes = NO_OPTIONS
    priority: int = 2
    expires_ms: int = 0

    @property
    def task(self) -> Options:
        return decode_options(self.options)


@lru_cache(maxsize=4096)
def _topic(topics: Topics, queue: bytes) -> str:
    return topics.due(queue.decode())


@lru_cache(maxsize=4096)
def _standing(shard: int, minute: int) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
    """Headers that many tasks share are made once, and are one object for all of them; so the next one."""
    return ("mw_shard", b"%d" % shard), ("mw_minute", b"%d" % minute)


@lru_cache(maxsize=256)
def _attempt(attempt: int) -> tuple[str, bytes]:
    return "mw_attempt", b"%d" % attempt


def due_message(topics: Topics, shard: int, minute: int, due_ms: int, filing: int, record: bytes) -> Message:
    """The due record of a filed record (`store.record.pack`), keyed by the task."""
    _, priority, attempt, _, origin, expires_ms, n_key, n_queue, n_options, n_headers = HEAD.unpack_from(record)
    queue_at = HEAD.size + n_key
    options_at = queue_at + n_queue
    headers_at = options_at + n_options
    payload_at = headers_at + n_headers
    key = record[HEAD.size : queue_at]
    tenant, _, task_id = key.partition(b"/")
    number = b"%d" % filing
    of_shard, of_minute = _standing(shard, minute)
    headers: Headers = (
        ("mw_id", task_id),
        ("mw_tenant", tenant),
        ("mw_due_ms", b"%d" % due_ms),
        _attempt(attempt),
        ("mw_filing", number),
        of_shard,
        of_minute,
        ("mw_idempotency_key", key + b":" + (number if origin == filing else b"%d" % origin)),
    )
    options = record[options_at:headers_at]
    if options != NO_OPTIONS:
        headers = (*headers, ("mw_task", options))
    if priority != 2:
        headers = (*headers, ("mw_priority", b"%d" % priority))
    if expires_ms:
        headers = (*headers, ("mw_expires_ms", b"%d" % expires_ms))
    own = record[headers_at:payload_at]
    if own != NO_HEADERS:
        headers = (*decode_headers(own), *headers)
    topic = _topic(topics, record[queue_at:options_at])
    return Message(topic, key, record[payload_at:], headers)


def parse_due(record: Record) -> Delivered:
    """Read a due record; `NotDue` if it lacks a header of ours, has one twice, or one that can't be."""
    ours: dict[str, bytes | None] = {}
    own: list[tuple[str, bytes | None]] = []
    for header in record.headers:
        name = header[0]
        if not name.startswith(RESERVED):
            own.append(header)
        elif name in ours:
            _refuse(record, f"{name} stands there twice")
        else:
            ours[name] = header[1]
    _, infix, queue = record.topic.partition(DUE_INFIX)
    if not infix or record.value is None:
        _refuse(record, "it has no payload or stands on no due topic")
    shard = _number(record, ours, "mw_shard", SHARDS)
    tenant, task_id = _text(record, ours, "mw_tenant"), _text(record, ours, "mw_id")
    idempotency_key = _text(record, ours, "mw_idempotency_key")
    key, _, origin = idempotency_key.rpartition(":")
    if key != f"{tenant}/{task_id}" or NUMBER.fullmatch(origin.encode()) is None:
        _refuse(record, "its idempotency key is not of its task")
    options = ours.get("mw_task") or NO_OPTIONS
    _check_options(record, options)
    return Delivered(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        queue=queue,
        key=key,
        tenant=tenant,
        id=task_id,
        due_ms=_number(record, ours, "mw_due_ms"),
        attempt=_number(record, ours, "mw_attempt"),
        filing=_number(record, ours, "mw_filing"),
        origin=int(origin),
        shard=shard,
        minute=_number(record, ours, "mw_minute"),
        idempotency_key=idempotency_key,
        payload=record.value,
        headers=tuple(own),
        options=options,
        priority=_number(record, ours, "mw_priority") if "mw_priority" in ours else 2,
        expires_ms=_number(record, ours, "mw_expires_ms") if "mw_expires_ms" in ours else 0,
    )


def _check_options(record: Record, options: bytes) -> None:
    if options != NO_OPTIONS:
        try:
            decode_options(options)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            _refuse(record, "mw_task can't be read")


def _number(record: Record, ours: dict[str, bytes | None], name: str, limit: int = FILING_LIMIT) -> int:
    value = ours.get(name)
    if value is None or NUMBER.fullmatch(value) is None or int(value) >= limit:
        _refuse(record, f"{name} is missing or no number")
    return int(value)


def _text(record: Record, ours: dict[str, bytes | None], name: str) -> str:
    try:
        return (ours.get(name) or b"").decode()
    except UnicodeDecodeError:
        _refuse(record, f"{name} is not UTF-8")


def _refuse(record: Record, reason: str) -> NoReturn:
    raise NotDue(f"{record.topic}[{record.partition}] {record.offset}: {reason}")
