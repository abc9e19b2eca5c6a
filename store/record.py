"""How is a filed task laid out in the one blob that its bucket row, the wheel and the gate carry?

A fixed head that the hot path reads without decoding the rest (fence, priority, lane), then the key, the queue, the
options (msgpack, published as they are in the `mw_task` header), the submitter's headers (msgpack) and the payload.

    offset  0        1         2        4      12      20          28       30         31           33           37
            version  priority  attempt  fence  origin  expires_ms  key len  queue len  options len  headers len  key …
"""

from struct import Struct as Layout

import msgspec
from msgspec import Struct

HEAD = Layout(">BBHQqqHBHI")
VERSION = 1
FENCE = Layout(">Q")
FENCE_AT = 4
EXPIRES = Layout(">q")
EXPIRES_AT = 20
LENGTHS = Layout(">HB")
"""Of the key and the queue."""
LENGTHS_AT = 28
QUEUE_AT = HEAD.size
"""Where the queue would stand if the key before it were empty."""

Headers = tuple[tuple[str, bytes | None], ...]


class Retry(Struct, frozen=True, gc=False, forbid_unknown_fields=True, array_like=False):
    """Delays base, base × factor, base × factor² … up to the cap; the first follows the first failed start."""

    base_ms: int = 1_000
    factor: float = 2.0
    cap_ms: int = 3_600_000


class Options(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename={"max_attempts": "m", "timeout_ms": "t", "starts": "s", "retry": "r", "receipt": "c"},
):
    """What a retry or a dead letter needs of a task besides what the head and the headers say.

    `starts` counts the starts of earlier attempts; `receipt` is what the submitter wants receipts to be marked with,
    None for no receipts.
    """

    max_attempts: int = 5
    timeout_ms: int = 0
    starts: int = 0
    retry: Retry = Retry()
    receipt: str | None = None


class Filed(Struct, frozen=True, gc=False):
    """A filed task, decoded. `key` is `<tenant>/<id>`; `expires_ms` 0 is never; `options` and `headers` are msgpack."""

    fence: int
    origin: int
    attempt: int
    priority: int
    expires_ms: int
    key: str
    queue: str
    options: bytes
    headers: bytes
    payload: bytes

    @property
    def tenant(self) -> str:
        return self.key.partition("/")[0]


NO_HEADERS = msgspec.msgpack.encode(())
_options = msgspec.msgpack.Decoder(Options)
_headers = msgspec.msgpack.Decoder(Headers)
_encode = msgspec.msgpack.Encoder().encode


def pack(filed: Filed) -> bytes:
    key, queue = filed.key.encode(), filed.queue.encode()
    head = HEAD.pack(
        VERSION,
        filed.priority,
        filed.attempt,
        filed.fence,
        filed.origin,
        filed.expires_ms,
        len(key),
        len(queue),
        len(filed.options),
        len(filed.headers),
    )
    return b"".join((head, key, queue, filed.options, filed.headers, filed.payload))


def unpack(record: bytes) -> Filed:
    _, priority, attempt, fence, origin, expires_ms, n_key, n_queue, n_options, n_headers = HEAD.unpack_from(record)
    queue_at = HEAD.size + n_key
    options_at = queue_at + n_queue
    headers_at = options_at + n_options
    payload_at = headers_at + n_headers
    return Filed(
        fence,
        origin,
        attempt,
        priority,
        expires_ms,
        record[HEAD.size : queue_at].decode(),
        record[queue_at:options_at].decode(),
        record[options_at:headers_at],
        record[headers_at:payload_at],
        record[payload_at:],
    )


def fence_of(record: bytes) -> int:
    fence: int = FENCE.unpack_from(record, FENCE_AT)[0]
    return fence


def with_fence(record: bytes, fence: int) -> bytes:
    """The same filing, written again under another owner's fence (rule G)."""
    return record[:FENCE_AT] + FENCE.pack(fence) + record[FENCE_AT + FENCE.size :]


def encode_options(options: Options) -> bytes:
    return _encode(options)


def decode_options(data: bytes) -> Options:
    return _options.decode(data)


def encode_headers(headers: Headers) -> bytes:
    return _encode(headers) if headers else NO_HEADERS


def decode_headers(data: bytes) -> Headers:
    return _headers.decode(data)


def expires_of(record: bytes) -> int:
    """The start deadline, 0 for none."""
    expires_ms: int = EXPIRES.unpack_from(record, EXPIRES_AT)[0]
    return expires_ms
