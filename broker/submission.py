"""What does a record of `submit` or `forwarded` ask for?

`Decoder.decode` answers with one `Decoded` for each item of the record, in their order, and with nothing else: no
input makes it raise, wait or use more than a small multiple of the record's size. Which form a record has, its
headers say:

    content-type                                  form
    (none), application/json                      plain JSON; a null value with a key cancels that task
    application/msgpack                           the same fields in msgpack
    application/cloudevents+json                  CloudEvents 1.0, structured
    (any, with a header ce_specversion)           CloudEvents 1.0, binary
    application/vnd.minutewheel.batch+json        an array of plain submissions, each decided alone
    application/vnd.minutewheel.batch+msgpack     the same in msgpack

A good command of another shard than the one that reads it becomes a `Foreign`: its item's own bytes and headers, and
a header `mw_origin` with the partition, position and time of the record in which it stood first. Read from there it
gives the same command, for all that is derived from the place of a record (a made id, a delayed due time) is derived
from that first place. Pure: time is the record's.
"""

import re
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw

from ..store.position import POSITION_BITS, Log, pack_position
from ..store.record import Headers
from ..store.task import SHARDS
from . import cloudevents
from .command import Cancel, Code, Command, Decoded, Foreign, InvalidTask, Rejection, Standing
from .form import Reader, Sent, transport_headers
from .limits import Limits
from .media import (
    BATCH_JSON,
    BATCH_MSGPACK,
    CONTENT_TYPE,
    MSGPACK_NAMES,
    STRUCTURED,
    is_binary_event,
    media_type_of,
)
from .partitioner import shard_of
from .plain import UNREADABLE, read_json, read_msgpack, unreadable
from .wire import JSON, MSGPACK, Message, Record, Topics

ORIGIN = "mw_origin"
ORIGIN_FORM = re.compile(rb"([0-9]{1,2})/([0-9]{1,19})/(-?[0-9]{1,18})")
JSON_HEADERS: Headers = ()
MSGPACK_HEADERS: Headers = ((CONTENT_TYPE, MSGPACK.encode()),)

_json_items = msgspec.json.Decoder(list[Raw]).decode
_msgpack_items = msgspec.msgpack.Decoder(list[Raw]).decode


class Decoder:
    """Decodes the records of one installation's logs of commands. Holds no state between records."""

    def __init__(self, limits: Limits | None = None, topics: Topics | None = None) -> None:
        self.limits = limits or Limits()
        self.topics = topics or Topics()
        self.reader = Reader(self.limits)
        self._forwarding = self.topics.forwarded

    def decode(self, record: Record, shard: int, incarnation: int) -> list[Decoded]:
        """One entry an item, at least one. `shard` is the reader's; the incarnation is that of the record's topic."""
        forwarded = record.topic == self._forwarding
        log = Log.FORWARDED if forwarded else Log.SUBMIT
        try:
            at = Standing(log, pack_position(incarnation, record.offset), record.time_ms)
        except OverflowError as error:
            return [Rejection(Standing(log, -1, record.time_ms), Code.NO_POSITION, str(error), "offset")]
        try:
            if forwarded:
                return [self._forwarded(record, at, shard)]
            media_type = media_type_of(record.headers)
            if media_type in (BATCH_JSON, BATCH_MSGPACK):
                return list(self._batch(record, at, shard, media_type))
            command = self._single(record.key, record.value, record.headers, media_type, at, record.partition)
        except InvalidTask as invalid:
            return [Rejection(at, invalid.code, invalid.message, invalid.field)]
        return [self._placed(command, shard, record.partition, record.value, record.headers)]

    def read_item(self, value: bytes, at: Standing, partition: int, *, packed: bool) -> Command:
        """The command of one plain submission, msgpack if `packed`; raises `InvalidTask`."""
        sent = read_msgpack(value) if packed else read_json(value, self.limits.nesting)
        return self.reader.read(sent, at, partition)

    def _single(
        self, key: bytes | None, value: bytes | None, headers: Headers, media_type: str, at: Standing, partition: int
    ) -> Command:
        if value is None and not is_binary_event(headers):
            return self._null(key, headers, at)
        return self.reader.read(self._sent(value, headers, media_type), at, partition)

    def _sent(self, value: bytes | None, headers: Headers, media_type: str) -> Sent:
        if not headers:
            return read_json(_not_empty(value), self.limits.nesting)
        if headers == MSGPACK_HEADERS:
            return read_msgpack(_not_empty(value))
        if media_type == STRUCTURED:
            return cloudevents.read_structured(headers, _not_empty(value), self.limits.nesting)
        if is_binary_event(headers):
            return cloudevents.read_binary(headers, value)
        if media_type == JSON:
            sent = read_json(_not_empty(value), self.limits.nesting)
        elif media_type in MSGPACK_NAMES:
            sent = read_msgpack(_not_empty(value))
        else:
            raise InvalidTask(Code.UNKNOWN_CONTENT_TYPE, "no form of submission has this content-type", CONTENT_TYPE)
        return Sent(sent.form, sent.payload, sent.content, transport_headers(headers))

    def _null(self, key: bytes | None, headers: Headers, at: Standing) -> Cancel:
        """A null value with a key cancels the task of that key."""
        if not key:
            raise InvalidTask(Code.EMPTY, "the record has neither a value nor a key")
        transport_headers(headers)
        try:
            tenant, slash, task_id = key.decode().partition("/")
        except UnicodeDecodeError:
            raise InvalidTask(Code.BAD_ID, "the key is not UTF-8", "id") from None
        if not slash:
            raise InvalidTask(Code.BAD_ID, "the key of a cancelling record is <tenant>/<id>", "id")
        return Cancel(at=at, key=self.reader.key_of(tenant, task_id))

    def _batch(self, record: Record, at: Standing, shard: int, media_type: str) -> Iterator[Decoded]:
        packed = media_type == BATCH_MSGPACK
        items = self._items(_not_empty(record.value), _msgpack_items if packed else _json_items)
        transport_headers(record.headers)
        headers = MSGPACK_HEADERS if packed else JSON_HEADERS
        for index, raw in enumerate(items):
            item = bytes(raw)
            here = Standing(at.log, at.position | index, at.time_ms)
            try:
                command = self.read_item(item, here, record.partition, packed=packed)
            except InvalidTask as invalid:
                yield Rejection(here, invalid.code, invalid.message, invalid.field, item)
            else:
                yield self._placed(command, shard, record.partition, item, headers)

    def _items(self, value: bytes, decode: Callable[[bytes], list[Raw]]) -> list[Raw]:
        try:
            items = decode(value)
        except UNREADABLE as error:
            invalid = unreadable(error)
            code = Code.NOT_DECODABLE if invalid.code is Code.NOT_AN_OBJECT else invalid.code
            raise InvalidTask(code, f"a batch is an array: {invalid.message}") from None
        if not items:
            raise InvalidTask(Code.EMPTY, "the batch has no items")
        if len(items) > self.limits.batch_items:
            message = f"the batch has {len(items)} items of at most {self.limits.batch_items}"
            raise InvalidTask(Code.BATCH_TOO_LARGE, message)
        return items

    def _placed(
        self, command: Command, shard: int, partition: int, value: bytes | None, headers: Headers
    ) -> Command | Foreign:
        target = shard_of(command.key)
        if target == shard:
            return command
        at = command.at
        origin = (ORIGIN, b"%d/%d/%d" % (partition, at.position, at.time_ms))
        return Foreign(at, target, command.key, value, (*headers, origin))

    def _forwarded(self, record: Record, at: Standing, shard: int) -> Command | Rejection:
        partition, position, time_ms = _origin(record.headers)
        headers = tuple(header for header in record.headers if header[0] != ORIGIN)
        first = Standing(Log.FORWARDED, at.position, time_ms, partition << POSITION_BITS | position)
        media_type = media_type_of(headers)
        if media_type in (BATCH_JSON, BATCH_MSGPACK):
            raise InvalidTask(Code.UNKNOWN_CONTENT_TYPE, "batches are forwarded item by item", CONTENT_TYPE)
        command = self._single(record.key, record.value, headers, media_type, first, partition)
        if record.key != command.key.encode():
            raise InvalidTask(Code.KEY_MISMATCH, "a forwarded record has the key of its task")
        if shard_of(command.key) != shard:
            raise InvalidTask(Code.WRONG_SHARD, f"the task is of shard {shard_of(command.key)}, not {shard}")
        return command


def _not_empty(value: bytes | None) -> bytes:
    if not value:
        raise InvalidTask(Code.EMPTY, "the record has no value")
    return value


def _origin(headers: Headers) -> tuple[int, int, int]:
    """Partition, position and time of the record in which a forwarded command stood first."""
    given = [value for name, value in headers if name == ORIGIN]
    match = ORIGIN_FORM.fullmatch(given[0] or b"") if len(given) == 1 else None
    if match is None:
        raise InvalidTask(Code.MISSING_FIELD, "a forwarded record says once where it stood first", ORIGIN)
    partition, position, time_ms = map(int, match.groups())
    if partition >= SHARDS or position >= 1 << POSITION_BITS:
        raise InvalidTask(Code.BAD_VALUE, "there is no such place", ORIGIN)
    return partition, position, time_ms


def forwarded_message(topics: Topics, foreign: Foreign) -> Message:
    """What carries a foreign command to its own shard."""
    return Message(topics.forwarded, foreign.key.encode(), foreign.value, foreign.headers, foreign.shard)
