"""What is published of a task that will not be tried again?

The payload as it was submitted, under the task's key, with the submitter's headers and ours: `mw_id`, `mw_tenant`,
`mw_queue`, `mw_filing`, `mw_reason`, `mw_attempts`, `mw_died_ms`, `mw_history`. So whoever reads `dead` needs no
look into the store. The store's own letter is what `redrive` files anew.
"""

from ..store.record import Headers, decode_headers, unpack
from ..store.task import DeadLetter
from .partitioner import shard_of
from .wire import Message, Topics


def dead_message(topics: Topics, letter: DeadLetter) -> Message:
    """The letter as a message; one that has no record any more (redriven, dropped) has a null value."""
    tenant, _, task_id = letter.key.partition("/")
    ours: Headers = (
        ("mw_id", task_id.encode()),
        ("mw_tenant", tenant.encode()),
        ("mw_queue", letter.queue.encode()),
        ("mw_filing", b"%d" % letter.filing),
        ("mw_reason", letter.reason.encode(errors="replace")),
        ("mw_attempts", b"%d" % letter.attempts),
        ("mw_died_ms", b"%d" % letter.died_ms),
        ("mw_history", letter.history.encode(errors="replace")),
    )
    key, shard = letter.key.encode(), shard_of(letter.key)
    if not letter.record:
        return Message(topics.dead, key, None, ours, shard)
    filed = unpack(letter.record)
    return Message(topics.dead, key, filed.payload, (*decode_headers(filed.headers), *ours), shard)
