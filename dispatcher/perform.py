"""Which call to which port is each effect?"""

from collections.abc import Sequence

from ..broker.errors import BrokerError
from ..broker.port import Broker
from ..broker.wire import Record, Topics
from ..store.errors import StoreError
from ..store.port import Store
from ..store.position import pack_position
from ..store.progress import Offsets
from . import effects as ask


class Performer:
    """Performs effects on behalf of the owner of any shard. What a port refuses comes back as `Failed`."""

    def __init__(self, store: Store, broker: Broker, topics: Topics) -> None:
        self._store = store
        self._broker = broker
        self._topics = topics

    async def perform(self, shard: int, effect: ask.Effect) -> object:
        try:
            return await self._call(shard, effect)
        except (StoreError, BrokerError) as error:
            return ask.Failed(error)

    async def _call(self, shard: int, effect: ask.Effect) -> object:
        match effect:
            case ask.Produce(messages):
                return await self._broker.produce(messages)
            case ask.ReadEnds():
                return await self._ends(shard)
            case ask.ReadDue(places):
                return await self._due_records(places)
            case ask.Write() | ask.Record() | ask.Drop() | ask.PutClosing() | ask.Claim():
                return await self._write(shard, effect)
            case _:
                return await self._read(shard, effect)

    async def _write(
        self, shard: int, effect: ask.Write | ask.Record | ask.Drop | ask.PutClosing | ask.Claim
    ) -> object:
        store = self._store
        match effect:
            case ask.Write(timestamp, rows):
                await store.write(shard, timestamp, rows)
            case ask.Record(fence, checkpoint):
                return await store.record(shard, fence, checkpoint)
            case ask.Drop(minute, pieces, timestamp):
                await store.drop(shard, minute, pieces, timestamp)
            case ask.PutClosing(closing):
                await store.put_closing(shard, closing)
            case ask.Claim(fence, member, marks_up_to):
                return await store.claim(shard, fence, member, marks_up_to)
        return None

    async def _read(
        self,
        shard: int,
        effect: ask.LookUp | ask.ReadFilings | ask.ReadLetters | ask.ReadMarks | ask.ReadPage | ask.ReadProgress,
    ) -> object:
        store = self._store
        match effect:
            case ask.LookUp(keys):
                return await store.tasks(shard, keys)
            case ask.ReadFilings(places):
                return await store.filings(shard, places)
            case ask.ReadLetters(keys):
                return await store.letters(shard, keys)
            case ask.ReadMarks(minute):
                return await store.marks(shard, [minute])
            case ask.ReadPage(minute, piece, after, limit):
                return await store.page(shard, minute, piece, after, limit)
            case ask.ReadProgress():
                return await store.progress(shard, -1)

    async def _ends(self, shard: int) -> Offsets:
        """The present ends of the shard's three logs."""
        bounds = [(await self._broker.bounds(topic, [shard]))[0] for topic in self._topics.logs]
        submit, forwarded, outcomes = (pack_position(bound.incarnation, bound.end) for bound in bounds)
        return submit, forwarded, outcomes

    async def _due_records(self, places: Sequence[tuple[str, int, int]]) -> list[Record]:
        """Those of the published due records that are still there."""
        fetched = [await self._due_record(*place) for place in places]
        return [record for record in fetched if record is not None]

    async def _due_record(self, topic: str, partition: int, offset: int) -> Record | None:
        try:
            fetched = await self._broker.fetch(topic, partition, offset, 1, 0)
        except BrokerError:
            return None
        return next((record for record in fetched.records if record.offset == offset), None)
