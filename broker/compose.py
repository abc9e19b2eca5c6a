"""How does a client write what it asks for?

Plain arguments become a record of `submit` in msgpack (so that the payload may be any bytes), in the partition of its
task. Whatever is written is read back by the very decoder of the dispatchers, so a client refuses, before it sends,
just what they would refuse: `InvalidTask` with the same code. Many submissions go into batch records of one shard
each. A line of JSON becomes an item as it stands, once it is found good.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from ..store.position import Log
from ..store.record import Headers, Retry
from .command import Code, InvalidTask, OnConflict, Standing
from .form import DEFAULT_TENANT
from .limits import Limits
from .media import BATCH_JSON, BATCH_MSGPACK, CONTENT_TYPE
from .partitioner import shard_of
from .plain import FIELD_CODES, MsgpackForm
from .submission import Decoder
from .wire import JSON, MSGPACK, Message, Topics

BATCH_BYTES = 500_000
"""A batch record's size: half of what a broker takes by default."""
NOWHERE = Standing(Log.SUBMIT, 0, 0)
"""Where a command stands that was not sent yet; its delay counts from 1970, so that only its range is checked."""

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode


class Submission(Struct, frozen=True, gc=False, kw_only=True):
    """A task to be submitted. Exactly one of `due` (RFC 3339 with an offset, or ms) and `delay_ms` is given."""

    id: str
    queue: str
    payload: bytes = b""
    tenant: str = DEFAULT_TENANT
    due: int | str | None = None
    delay_ms: int | None = None
    headers: Mapping[str, str | bytes | None] = {}
    priority: int | None = None
    max_attempts: int | None = None
    retry: Retry | None = None
    timeout_ms: int | None = None
    expires: int | str | None = None
    on_conflict: OnConflict | None = None
    receipt: str | None = None


class Item(Struct, frozen=True, gc=False):
    """A checked submission, ready to be sent alone or in a batch of its shard. The key is "" where the id is made
    from the record's position; then the shard is any.
    """

    key: str
    shard: int
    value: bytes
    content_type: str = MSGPACK


class Composer:
    """Writes records for one installation."""

    def __init__(self, topics: Topics | None = None, limits: Limits | None = None) -> None:
        self.topics = topics or Topics()
        self._decoder = Decoder(limits, self.topics)

    def item(self, submission: Submission) -> Item:
        """Raise `InvalidTask` for what no dispatcher would accept."""
        return self._item(
            MsgpackForm(
                id=submission.id,
                queue=submission.queue,
                payload=submission.payload or UNSET,
                tenant=UNSET if submission.tenant == DEFAULT_TENANT else submission.tenant,
                due=_given(submission.due),
                delay_ms=_given(submission.delay_ms),
                headers=dict(submission.headers) or UNSET,
                priority=_given(submission.priority),
                max_attempts=_given(submission.max_attempts),
                retry=_given(submission.retry),
                timeout_ms=_given(submission.timeout_ms),
                expires=_given(submission.expires),
                on_conflict=_given(submission.on_conflict),
                receipt=_given(submission.receipt),
            )
        )

    def json_item(self, line: bytes) -> Item:
        """The same for one submission in JSON."""
        if not line:
            raise InvalidTask(Code.EMPTY, "the line is empty")
        command = self._decoder.read_item(line, NOWHERE, 0, packed=False)
        if "id" in msgspec.json.decode(line, type=dict[str, Raw]):
            return Item(command.key, shard_of(command.key), line, JSON)
        return Item("", shard_of(line), line, JSON)

    def submit(self, submission: Submission) -> Message:
        return self._message(self.item(submission))

    def cancel(self, tenant: str, task_id: str, *, receipt: str | None = None) -> Message:
        return self._ask("cancel", tenant, task_id, receipt)

    def discard(self, tenant: str, task_id: str, *, receipt: str | None = None) -> Message:
        return self._ask("discard", tenant, task_id, receipt)

    def reschedule(
        self,
        tenant: str,
        task_id: str,
        *,
        due: int | str | None = None,
        delay_ms: int | None = None,
        receipt: str | None = None,
    ) -> Message:
        return self._ask("reschedule", tenant, task_id, receipt, due, delay_ms)

    def redrive(
        self,
        tenant: str,
        task_id: str,
        *,
        due: int | str | None = None,
        delay_ms: int | None = None,
        receipt: str | None = None,
    ) -> Message:
        """Without a time it is due at once."""
        return self._ask("redrive", tenant, task_id, receipt, due, delay_ms)

    def batches(self, items: Iterable[Item], bytes_max: int = BATCH_BYTES) -> list[Message]:
        """All of them in as few records as may be, each of one shard; the items of a shard keep their order."""
        by_shard = sorted(items, key=lambda item: (item.shard, item.content_type))
        messages: list[Message] = []
        for (shard, content_type), group in groupby(by_shard, key=lambda item: (item.shard, item.content_type)):
            parts = _parts(group, self._decoder.limits.batch_items, bytes_max)
            messages.extend(self._batch(shard, content_type, part) for part in parts)
        return messages

    def _ask(
        self,
        op: str,
        tenant: str,
        task_id: str,
        receipt: str | None,
        due: int | str | None = None,
        delay_ms: int | None = None,
    ) -> Message:
        form = MsgpackForm(
            op=op,
            id=task_id,
            tenant=UNSET if tenant == DEFAULT_TENANT else tenant,
            receipt=_given(receipt),
            due=_given(due),
            delay_ms=_given(delay_ms),
        )
        return self._message(self._item(form))

    def _item(self, form: MsgpackForm) -> Item:
        try:
            value = _encode(form)
        except (UnicodeEncodeError, OverflowError, TypeError) as error:
            raise _unwritable(form, error) from None
        command = self._decoder.read_item(value, NOWHERE, 0, packed=True)
        return Item(command.key, shard_of(command.key), value)

    def _message(self, item: Item) -> Message:
        return Message(self.topics.submit, item.key.encode(), item.value, _typed(item.content_type), item.shard)

    def _batch(self, shard: int, content_type: str, items: list[Item]) -> Message:
        raws = [Raw(item.value) for item in items]
        if content_type == JSON:
            return Message(self.topics.submit, None, msgspec.json.encode(raws), _typed(BATCH_JSON), shard)
        return Message(self.topics.submit, None, _encode(raws), _typed(BATCH_MSGPACK), shard)


def _parts(items: Iterable[Item], count_max: int, bytes_max: int) -> Iterator[list[Item]]:
    part: list[Item] = []
    size = 0
    for item in items:
        if part and (len(part) >= count_max or size + len(item.value) > bytes_max):
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item.value) + 1
    yield part


def _typed(content_type: str) -> Headers:
    return ((CONTENT_TYPE, content_type.encode()),)


def _given(value: T | None) -> T | msgspec.UnsetType:
    return UNSET if value is None else value


def _unwritable(form: MsgpackForm, error: Exception) -> InvalidTask:
    """Name the field that msgpack has no form for: a lone surrogate, an integer over 64 bits, a foreign type."""
    for name in form.__struct_fields__:
        try:
            value = getattr(form, name)
            _encode(None if value is UNSET else value)
        except (UnicodeEncodeError, OverflowError, TypeError):
            return InvalidTask(FIELD_CODES.get(name, Code.BAD_VALUE), f"{name}: {error}", name)
    return InvalidTask(Code.BAD_VALUE, str(error))
