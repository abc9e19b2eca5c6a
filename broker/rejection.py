"""What is written to `rejected`, so that its sender can see what was wrong and send it again?

The record as it came (key, value and headers, within bounds; of a batch only the refused item) and behind its own
headers ours: `mw_code`, `mw_message`, `mw_field`, `mw_topic`, `mw_partition`, `mw_offset`, `mw_index`, and `mw_cut`
with the full number of bytes if the value was cut.
"""

from ..store.position import INDEX_LIMIT
from ..store.record import Headers
from ..store.task import SHARDS
from .command import Rejection
from .wire import Message, Record, Topics

VALUE_BYTES_KEPT = 131_072
HEADER_BYTES_KEPT = 16_384
HEADERS_KEPT = 128
KEY_BYTES_KEPT = 1_024
MESSAGE_CHARS_KEPT = 512
OURS = frozenset({"mw_code", "mw_message", "mw_field", "mw_topic", "mw_partition", "mw_offset", "mw_index", "mw_cut"})


def rejection_message(topics: Topics, record: Record, rejection: Rejection) -> Message:
    """The refused record as a message, in the partition of `rejected` that has the number (mod 64) of its own."""
    value = record.value if rejection.item is None else rejection.item
    index = 0 if rejection.at.position < 0 else rejection.at.position & (INDEX_LIMIT - 1)
    ours: list[tuple[str, bytes | None]] = [
        ("mw_code", rejection.code.value.encode()),
        ("mw_message", rejection.message[:MESSAGE_CHARS_KEPT].encode(errors="replace")),
        ("mw_field", rejection.field.encode(errors="replace")),
        ("mw_topic", record.topic.encode()),
        ("mw_partition", b"%d" % record.partition),
        ("mw_offset", b"%d" % record.offset),
        ("mw_index", b"%d" % index),
    ]
    if value is not None and len(value) > VALUE_BYTES_KEPT:
        ours.append(("mw_cut", b"%d" % len(value)))
        value = value[:VALUE_BYTES_KEPT]
    key = None if record.key is None else record.key[:KEY_BYTES_KEPT]
    return Message(topics.rejected, key, value, (*_kept(record.headers), *ours), record.partition % SHARDS)


def _kept(headers: Headers) -> Headers:
    """The first headers, as many as fit; those that bear our names would only mislead."""
    kept: list[tuple[str, bytes | None]] = []
    left = HEADER_BYTES_KEPT
    for name, value in headers[:HEADERS_KEPT]:
        left -= len(name.encode(errors="replace")) + len(value or b"")
        if left < 0:
            break
        if name not in OURS:
            kept.append((name, value))
    return tuple(kept)
