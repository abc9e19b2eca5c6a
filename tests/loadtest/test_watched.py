import pytest
from minutewheel.broker.errors import BrokerError
from minutewheel.broker.wire import Message
from minutewheel.loadtest.stage import QUEUE
from minutewheel.loadtest.watched import WatchedBroker, due_ms_of
from minutewheel.settings import Settings
from minutewheel.wiring import opened


@pytest.mark.pure
def test_the_due_time_is_read_wherever_its_header_stands() -> None:
    assert due_ms_of(Message("t", None, b"", (("own", None), ("mw_due_ms", b"17"), ("mw_id", b"1")))) == 17


async def test_only_acknowledged_records_of_due_topics_count(embedded_settings: Settings) -> None:
    async with opened(embedded_settings) as installation:
        topics = installation.topics
        watched = WatchedBroker(installation.broker, topics, lambda: 1_000)
        due = [Message(topics.due(QUEUE), b"k", b"", (("mw_due_ms", b"%d" % at),)) for at in (990, 1_000)]
        nowhere = Message(topics.due("nowhere"), b"k", b"", (("mw_due_ms", b"1"),))
        answers = await watched.produce([*due, nowhere])
        assert isinstance(answers[-1], BrokerError)
        await watched.produce([Message(topics.receipts, b"k", b"", ())])
        assert list(watched.late_ms) == [10, 0]
        assert watched.last_ms == 1_000
        fetched = [await watched.fetch(topics.due(QUEUE), answer.partition, 0, 10, 0) for answer in answers[:1]]  # type: ignore[union-attr]
        assert fetched[0].records
