"""How does a program say what it wants run, and when?

`submission(payload, queue=…, at=…)` makes the value that the clients submit. Times may be a `datetime` with a zone,
RFC 3339 text or whole ms; a payload may be anything that JSON can say, or bytes, which stay as they are.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

import msgspec

from ..broker.command import Code, InvalidTask, OnConflict
from ..broker.compose import Submission
from ..broker.form import DEFAULT_TENANT
from ..store.record import Retry as Backoff

Time = datetime | int | str
_MS = timedelta(milliseconds=1)


class Wish(TypedDict, total=False):
    """What can be said of one submission. Without `at` and `delay` it is due at once; without `id` one is made."""

    at: Time
    delay: timedelta
    id: str
    tenant: str
    priority: int
    expires: Time
    on_conflict: OnConflict
    headers: Mapping[str, str | bytes | None]
    receipt: str


class Options(Wish, total=False):
    """What else can be said, where no handler says it."""

    max_attempts: int
    timeout_ms: int
    retry: Backoff


def submission(payload: Any, *, queue: str, **options: Unpack[Options]) -> Submission:
    """Raise `InvalidTask` for what can't be written down; the rest is checked when it is submitted."""
    at, delay = options.get("at"), options.get("delay")
    delay_ms = None if delay is None else delay // _MS
    return Submission(
        id=options.get("id") or uuid.uuid4().hex,
        tenant=options.get("tenant", DEFAULT_TENANT),
        queue=queue,
        payload=payload if isinstance(payload, bytes) else _json(payload),
        due=None if at is None else _time(at, "due"),
        delay_ms=0 if at is None and delay_ms is None else delay_ms,
        headers=options.get("headers", {}),
        priority=options.get("priority"),
        max_attempts=options.get("max_attempts"),
        retry=options.get("retry"),
        timeout_ms=options.get("timeout_ms"),
        expires=_time(options["expires"], "expires") if "expires" in options else None,
        on_conflict=options.get("on_conflict"),
        receipt=options.get("receipt"),
    )


def due_of(at: Time | None, delay: timedelta | None) -> tuple[int | str | None, int | None]:
    """Of a reschedule or a redrive: the due time and the delay in ms, as the wire has them."""
    return None if at is None else _time(at, "due"), None if delay is None else delay // _MS


def _time(time: Time, field: str) -> int | str:
    if not isinstance(time, datetime):
        return time
    if time.tzinfo is None:
        raise InvalidTask(Code.BAD_DUE, f"{time.isoformat()} has no zone: which hour is meant?", field)
    return time.isoformat()


def _json(payload: Any) -> bytes:
    try:
        return msgspec.json.encode(payload)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidTask(Code.BAD_VALUE, f"the payload can't be written as JSON: {error}", "payload") from error
