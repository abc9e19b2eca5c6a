"""What may a submission say, and which command is it?

Every form of record (plain JSON, msgpack, CloudEvents, a batch's item) is read into one `Sent`: the fields as they
were given, the payload's bytes and the headers. `Reader` then checks each field once, for all forms alike, and makes
the command; it raises `InvalidTask` with a code of the closed list.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType
from msgspec.msgpack import Encoder

from ..store.position import POSITION_BITS, unpack_position
from ..store.record import Headers, Retry
from . import due_time
from .command import (
    Cancel,
    Code,
    Command,
    Discard,
    InvalidTask,
    OnConflict,
    Redrive,
    Reschedule,
    Standing,
    Submit,
)
from .limits import Limits
from .media import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = 1
DEFAULT_TENANT = "default"
NAME_MAX = 64
NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{NAME_MAX}}}")
CONFLICTS: dict[str, OnConflict] = {"reject": "reject", "replace": "replace", "keep": "keep"}
UNSUPPORTED = frozenset({"limits", "after", "window_ms", "group"})
"""Fields of the published form that this version does not know how to honour: refused, never half understood."""
RESERVED = "mw_"
"""Headers that begin so are ours."""
SHOWN_MAX = 64
UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
DIGEST_BYTES = 16
DEFAULT_RETRY = Retry()

_encode = Encoder().encode


class Form(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """The fields of a submission as sent, but for the payload and the headers, which each form carries in its way."""

    version: int | UnsetType = UNSET
    op: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    tenant: str | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    due: int | str | UnsetType = UNSET
    delay_ms: int | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    max_attempts: int | UnsetType = UNSET
    retry: Retry | UnsetType = UNSET
    timeout_ms: int | UnsetType = UNSET
    expires: int | str | UnsetType = UNSET
    on_conflict: str | UnsetType = UNSET
    receipt: str | UnsetType = UNSET


class Sent(Struct, frozen=True, gc=False):
    """A submission as sent. `content` are the headers that belong to what is asked for, and so to its digest;
    `transport` are those that came with the record (a trace's, say): passed on, but another send may have others.
    """

    form: Form
    payload: bytes = b""
    content: Headers = ()
    transport: Headers = ()


ADDRESSING = frozenset({"version", "op", "id", "tenant", "receipt"})
TIMED = ADDRESSING | {"due", "delay_ms"}


class Reader:
    """Checks submissions against the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._ops: dict[str, Callable[[Sent, Standing, int], Command]] = {
            "submit": self._submit,
            "cancel": lambda sent, at, _: Cancel(at=at, key=self._address(sent, "cancel"), receipt=self._receipt(sent)),
            "discard": lambda sent, at, _: Discard(
                at=at, key=self._address(sent, "discard"), receipt=self._receipt(sent)
            ),
            "reschedule": self._reschedule,
            "redrive": self._redrive,
        }

    def read(self, sent: Sent, at: Standing, partition: int) -> Command:
        """The command; the partition that it was first read from makes the id of a task without one."""
        version = sent.form.version
        if version is not UNSET and version != VERSION:
            raise InvalidTask(Code.UNKNOWN_VERSION, f"version {version} is not known here, only 1", "version")
        op = sent.form.op
        perform = self._ops.get("submit" if op is UNSET else op)
        if perform is None:
            raise InvalidTask(Code.UNKNOWN_OP, f"op is none of {', '.join(self._ops)}", "op")
        return perform(sent, at, partition)

    def key_of(self, tenant: str, task_id: str) -> str:
        """`<tenant>/<id>`, both checked."""
        if not is_name(tenant):
            raise InvalidTask(Code.BAD_TENANT, "a tenant is 1 to 64 of A-Z a-z 0-9 . _ -", "tenant")
        if not task_id:
            raise InvalidTask(Code.BAD_ID, "the id is empty", "id")
        check_text(task_id, self.limits.id_bytes, "id", Code.BAD_ID)
        return f"{tenant}/{task_id}"

    def _submit(self, sent: Sent, at: Standing, partition: int) -> Submit:
        form, limits = sent.form, self.limits
        if form.queue is UNSET:
            raise InvalidTask(Code.MISSING_FIELD, "queue is missing", "queue")
        if not is_name(form.queue):
            raise InvalidTask(Code.BAD_QUEUE, "a queue is 1 to 64 of A-Z a-z 0-9 . _ -", "queue")
        if len(sent.payload) > limits.payload_bytes:
            raise InvalidTask(
                Code.PAYLOAD_TOO_LARGE,
                f"the payload has {len(sent.payload)} bytes of at most {limits.payload_bytes}",
                "payload",
            )
        task_id = made_id(at, partition) if form.id is UNSET else form.id
        key = self.key_of(DEFAULT_TENANT if form.tenant is UNSET else form.tenant, task_id)
        due_ms = self._due(form, at)
        priority = _bounded(form.priority, 2, 1, 3, "priority")
        max_attempts = _bounded(form.max_attempts, 5, 1, limits.attempts, "max_attempts")
        retry = self._retry(form.retry)
        timeout_ms = _bounded(form.timeout_ms, 0, 0, limits.timeout_ms, "timeout_ms")
        expires_ms = _expires(form.expires, due_ms)
        return Submit(
            at=at,
            key=key,
            digest=_digest(
                form.queue,
                (due_ms, None) if form.delay_ms is UNSET else (None, form.delay_ms),
                (priority, max_attempts, retry.base_ms, retry.factor, retry.cap_ms, timeout_ms, expires_ms),
                sent,
            ),
            queue=form.queue,
            due_ms=due_ms,
            payload=sent.payload,
            headers=self._headers(sent),
            priority=priority,
            max_attempts=max_attempts,
            retry=retry,
            timeout_ms=timeout_ms,
            expires_ms=expires_ms,
            on_conflict=_on_conflict(form.on_conflict),
            receipt=self._receipt(sent),
        )

    def _reschedule(self, sent: Sent, at: Standing, _partition: int) -> Reschedule:
        key = self._address(sent, "reschedule", TIMED)
        return Reschedule(at=at, key=key, due_ms=self._due(sent.form, at), receipt=self._receipt(sent))

    def _redrive(self, sent: Sent, at: Standing, _partition: int) -> Redrive:
        key, form = self._address(sent, "redrive", TIMED), sent.form
        timed = form.due is not UNSET or form.delay_ms is not UNSET
        due_ms = self._due(form, at) if timed else max(0, at.time_ms)
        return Redrive(at=at, key=key, due_ms=due_ms, receipt=self._receipt(sent))

    def _address(self, sent: Sent, op: str, allowed: frozenset[str] = ADDRESSING) -> str:
        """The key of a command that names a task and says nothing of its content."""
        form = sent.form
        for name in form.__struct_fields__:
            if name not in allowed and getattr(form, name) is not UNSET:
                raise InvalidTask(Code.UNKNOWN_FIELD, f"{name} means nothing to {op}", name)
        if sent.payload:
            raise InvalidTask(Code.UNKNOWN_FIELD, f"a payload means nothing to {op}", "payload")
        if form.id is UNSET:
            raise InvalidTask(Code.MISSING_FIELD, f"{op} needs the id of its task", "id")
        return self.key_of(DEFAULT_TENANT if form.tenant is UNSET else form.tenant, form.id)

    def _due(self, form: Form, at: Standing) -> int:
        if form.due is not UNSET:
            if form.delay_ms is not UNSET:
                raise InvalidTask(Code.DUE_AND_DELAY, "due and delay_ms exclude each other", "delay_ms")
            return due_time.time_ms(form.due)
        if form.delay_ms is UNSET:
            raise InvalidTask(Code.MISSING_FIELD, "due or delay_ms is missing", "due")
        if not 0 <= form.delay_ms <= due_time.LAST_MS:
            raise InvalidTask(Code.BAD_DUE, f"delay_ms is not in 0 to {due_time.LAST_MS}", "delay_ms")
        return due_time.in_range(at.time_ms + form.delay_ms, "delay_ms")

    def _receipt(self, sent: Sent) -> str | None:
        receipt = sent.form.receipt
        if receipt is UNSET:
            return None
        check_text(receipt, self.limits.receipt_bytes, "receipt", Code.BAD_VALUE)
        return receipt

    def _retry(self, retry: Retry | UnsetType) -> Retry:
        if retry is UNSET:
            return DEFAULT_RETRY
        check_retry(retry, self.limits)
        return retry

    def _headers(self, sent: Sent) -> Headers:
        if not sent.content:
            headers = sent.transport
        else:
            named = {name for name, _ in sent.content}
            headers = (*(header for header in sent.transport if header[0] not in named), *sent.content)
        if headers:
            check_headers(headers, self.limits)
        return headers


def made_id(at: Standing, partition: int) -> str:
    """The id of a task without one, from where it stood first, so that a replay makes the same."""
    position = at.position
    if at.origin >= 0:
        partition, position = at.origin >> POSITION_BITS, at.origin & ((1 << POSITION_BITS) - 1)
    place = unpack_position(position)
    return f"{partition}-{place.incarnation}-{place.offset}-{place.item}"


def is_name(text: str) -> bool:
    """Is it fit for a tenant or a queue? Few names are in use, so each is matched once."""
    return len(text) <= NAME_MAX and _matches(text)


@lru_cache(maxsize=1_024)
def _matches(text: str) -> bool:
    return NAME.fullmatch(text) is not None


def transport_headers(headers: Headers) -> Headers:
    """The record's own headers, without its content-type, which speaks of the envelope."""
    for name, _ in headers:
        if name.startswith(RESERVED):
            message = f"headers that begin with {RESERVED} are ours; a CloudEvent has ce_specversion with them"
            raise InvalidTask(Code.UNKNOWN_FIELD, message, shown(name))
    return tuple(header for header in headers if header[0].lower() != CONTENT_TYPE)


def shown(name: str) -> str:
    """A name of the sender's making, fit to be shown."""
    return name if len(name) <= SHOWN_MAX and name.isprintable() else repr(name[:SHOWN_MAX])


def check_text(text: str, bytes_max: int, field: str, code: Code) -> None:
    """Printable, composed (NFC), and not too long in UTF-8."""
    if len(text) > bytes_max:  # before looking at each letter of it
        raise InvalidTask(code, f"{field} has more than {bytes_max} bytes of UTF-8", field)
    if text.isascii():
        if not text.isprintable():
            raise InvalidTask(code, f"{field} has control characters", field)
        return
    if not UNPRINTABLE.isdisjoint(map(unicodedata.category, text)):
        raise InvalidTask(code, f"{field} has control characters, line separators or lone surrogates", field)
    if not unicodedata.is_normalized("NFC", text):
        raise InvalidTask(code, f"{field} is not in Unicode's composed form (NFC)", field)
    if len(text.encode()) > bytes_max:
        raise InvalidTask(code, f"{field} has more than {bytes_max} bytes of UTF-8", field)


def check_headers(headers: Headers, limits: Limits) -> None:
    """Few, small, and with names that every client can carry."""
    if len(headers) > limits.headers:
        raise InvalidTask(
            Code.HEADERS_TOO_LARGE, f"there are {len(headers)} headers of at most {limits.headers}", "headers"
        )
    size = 0
    for name, value in headers:
        if not name:
            raise InvalidTask(Code.BAD_VALUE, "a header has no name", "headers")
        check_text(name, limits.header_name_bytes, "headers", Code.BAD_VALUE)
        size += len(name.encode()) + len(value or b"")
    if size > limits.header_bytes:
        raise InvalidTask(
            Code.HEADERS_TOO_LARGE, f"the headers have {size} bytes of at most {limits.header_bytes}", "headers"
        )


def check_retry(retry: Retry, limits: Limits) -> None:
    """Delays of at least 1 ms that never shrink; not-a-number fails every comparison."""
    if not 1 <= retry.base_ms <= retry.cap_ms <= limits.retry_ms:
        raise InvalidTask(Code.BAD_VALUE, f"retry needs 1 <= base_ms <= cap_ms <= {limits.retry_ms}", "retry")
    if not 1.0 <= retry.factor <= limits.retry_factor:
        raise InvalidTask(Code.BAD_VALUE, f"retry's factor is not in 1 to {limits.retry_factor}", "retry")


def _digest(queue: str, due: tuple[int | None, int | None], options: tuple[float, ...], sent: Sent) -> bytes:
    """The hash of what was asked for: equal for equal contents in whichever form, white space and field order.

    A delay counts as the delay that it was, so that sending the same again is a duplicate although its record is
    younger. What to answer (receipt) and what to do about a conflict are no content.
    """
    headers = sorted(sent.content, key=_name) if sent.content else ()
    return blake2b(_encode((queue, due, options, headers, sent.payload)), digest_size=DIGEST_BYTES).digest()


def _name(header: tuple[str, bytes | None]) -> str:
    return header[0]


def _bounded(value: int | UnsetType, default: int, low: int, high: int, field: str) -> int:
    if value is UNSET:
        return default
    if not low <= value <= high:
        raise InvalidTask(Code.BAD_VALUE, f"{field} is not in {low} to {high}", field)
    return value


def _expires(expires: int | str | UnsetType, due_ms: int) -> int:
    if expires is UNSET:
        return 0
    expires_ms = due_time.time_ms(expires, "expires")
    if expires_ms < due_ms:
        raise InvalidTask(Code.BAD_VALUE, "expires lies before the due time: it could never start", "expires")
    return expires_ms


def _on_conflict(value: str | UnsetType) -> OnConflict:
    if value is UNSET:
        return "reject"
    known = CONFLICTS.get(value)
    if known is None:
        raise InvalidTask(Code.BAD_VALUE, f"on_conflict is none of {', '.join(CONFLICTS)}", "on_conflict")
    return known
