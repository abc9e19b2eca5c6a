"""What does a record of one of the shard's three logs hold, as things to apply?

Joins the decoders of submissions and outcomes, and turns what belongs to another shard into the message that takes it
there. Queues that nobody declared are refused here, for the decoder knows no declarations.
"""

from collections.abc import Callable

from ..broker.command import Code, Decoded, Foreign, Rejection, Submit
from ..broker.outcome import Reported, decode_outcome
from ..broker.submission import Decoder, forwarded_message
from ..broker.wire import Record, Topics
from ..store.position import Log
from .intake import Decode, Item


def decoding(shard: int, decoder: Decoder, topics: Topics, admits: Callable[[str], bool]) -> Decode:
    """The decoder of one shard's logs; `admits` says which queues a submission may name."""

    def decode(log: Log, record: Record, incarnation: int) -> list[Item]:
        if log is Log.OUTCOMES:
            return [_outcome(record, shard, incarnation, topics)]
        return [_item(log, what, record, topics, admits) for what in decoder.decode(record, shard, incarnation)]

    return decode


def _outcome(record: Record, shard: int, incarnation: int, topics: Topics) -> Item:
    what = decode_outcome(record, shard, incarnation, topics)
    position = what.at.position
    if isinstance(what, Reported):
        return Item(Log.OUTCOMES, position, record.time_ms, what.outcome, record)
    if isinstance(what, Rejection):
        return Item(Log.OUTCOMES, position, record.time_ms, what, record)
    return Item(Log.OUTCOMES, position, record.time_ms, what.message, record)


def _item(log: Log, what: Decoded, record: Record, topics: Topics, admits: Callable[[str], bool]) -> Item:
    at = what.at
    if isinstance(what, Submit):
        if not admits(what.queue):
            what = Rejection(at, Code.UNKNOWN_QUEUE, f"no queue {what.queue!r} is declared", "queue")
    elif isinstance(what, Foreign):
        return Item(log, at.position, at.time_ms, forwarded_message(topics, what), record)
    return Item(log, at.position, at.time_ms, what, record)
