"""How deliveries are taken in hand; their ways from there are in test_runner.py and test_settling.py."""

from typing import Any

from minutewheel import AsyncContext
from minutewheel.broker.due import parse_due
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.wire import Record
from minutewheel.worker.claims import ledger_place
from minutewheel.worker.deliveries import Delivery


def delivery(message: Any) -> Delivery:
    return Delivery(parse_due(Record(message.topic, 0, 0, 0, message.key, message.value, message.headers)))


async def test_one_claim_a_place_and_no_filing_twice(stand: Any) -> None:
    deliveries = stand.worker()._deliveries
    messages = [stand.due(f"acme/{n}") for n in range(200)]
    groups, repeats = deliveries.take([delivery(message) for message in [*messages, *messages[:5]]])
    assert len(groups) == len({ledger_place(one.delivered) for group in groups for one in group})
    for group in groups:
        assert len({ledger_place(one.delivered) for one in group}) == 1
    assert sum(map(len, groups)) == 200
    assert [one.filing for one in repeats] == [groups_filing(messages[n]) for n in range(5)]
    assert deliveries.in_hand == 205
    _, again = deliveries.take([delivery(messages[0])])
    assert len(again) == 1, "still in hand"


def groups_filing(message: Any) -> int:
    return int(dict(message.headers)["mw_filing"])


async def test_filings_of_two_shards_may_have_the_same_number(stand: Any) -> None:
    """A filing counts the records of its own shard's log, so the first of each shard are all called the same."""
    runs: list[str] = []

    @stand.app.task(queue="mail")
    async def send(payload: dict[str, int], ctx: AsyncContext) -> None:
        runs.append(ctx.key)

    keys = [f"acme/{n}" for n in range(50)]
    first_of_shard = {shard_of(key): key for key in keys}
    await stand.publish(*(stand.due(key, filing=1 << 14) for key in first_of_shard.values()))
    async with stand.running(stand.worker()) as worker:
        for key in first_of_shard.values():
            (outcome,) = await stand.outcomes(key)
            assert (outcome.kind, outcome.starts) == ("done", 1)
    assert sorted(runs) == sorted(first_of_shard.values())
    assert worker.statistics().finished_before == 0
