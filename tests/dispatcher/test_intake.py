"""Which delivered records are applied, and which comes next."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minutewheel.broker.command import Cancel, Code, Rejection, Standing, Submit
from minutewheel.broker.outcome import Outcome
from minutewheel.broker.port import Fetched
from minutewheel.broker.wire import Message, Record
from minutewheel.dispatcher.intake import Intake, Item
from minutewheel.store.position import Log, filing_number, pack_position, unpack_position

pytestmark = pytest.mark.pure

START = pack_position(1, 0)
STARTS = (START, START, START)
NOW_MS = 1_790_000_000_000

What = tuple[str, int] | str
"""What a test's record holds: (key, due or 0 for a cancel), "refused" or "foreign"."""


def position(offset: int, index: int = 0) -> int:
    return pack_position(1, offset, index)


def made(log: Log, record: Record, index: int, what: object) -> Item:
    at = Standing(log, position(record.offset, index), NOW_MS)
    match what:
        case Outcome():
            thing: object = what
        case "refused":
            thing = Rejection(at, Code.EMPTY, "")
        case "foreign":
            thing = Message("minutewheel.forwarded", b"k", b"", (), 7)
        case (key, 0):
            thing = Cancel(at=at, key=key)
        case (key, due_ms):
            thing = Submit(at=at, key=key, digest=b"", queue="mail", due_ms=due_ms, payload=b"")
    return Item(log, at.position, NOW_MS, thing, record)


class Logs:
    """Three logs as a broker has them, and an intake that reads them. A record's items are named by the test."""

    def __init__(self, read_ahead: int = 1_000) -> None:
        self.contents: dict[tuple[Log, int], Sequence[object]] = {}
        self.ends = [0, 0, 0]
        self.intake = Intake(STARTS, self.decode, read_ahead)

    def decode(self, log: Log, record: Record, incarnation: int) -> list[Item]:
        assert incarnation == 1
        return [made(log, record, index, what) for index, what in enumerate(self.contents[log, record.offset])]

    def add(self, log: Log, *items: object, gap: int = 0) -> int:
        """Append a record of these items, after so many offsets that hold none."""
        offset = self.ends[log] + gap
        self.contents[log, offset] = items
        self.ends[log] = offset + 1
        return offset

    def fetch(self, log: Log = Log.SUBMIT, limit: int = 1_000) -> None:
        """Read on, as the shell does."""
        start = unpack_position(self.intake.readers[log].next_position).offset
        found = sorted(offset for name, offset in self.contents if name is log and offset >= start)[:limit]
        records = [Record("t", 0, offset, NOW_MS, None, None) for offset in found]
        next_offset = found[-1] + 1 if len(found) == limit else max(self.ends[log], start)
        self.intake.deliver(log, Fetched(records, next_offset, self.ends[log], 1))

    def take(self, limit: int = 1_000) -> list[Item]:
        return self.intake.take(limit)


def places(items: Sequence[Item]) -> list[tuple[int, int]]:
    return [(unpack_position(item.position).offset, unpack_position(item.position).item) for item in items]


def outcome_of(log: Log, position: int, key: str = "a") -> Outcome:
    return Outcome(kind="done", key=key, shard=0, minute=0, filing=filing_number(log, position), origin=0)


# Order.


def test_the_nearest_due_goes_first_and_a_cancel_before_it() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("bulk1", 900), ("bulk2", 800), ("bulk3", 900))
    logs.add(Log.SUBMIT, ("urgent", 5))
    logs.add(Log.FORWARDED, ("cancelled", 0))
    logs.fetch()
    logs.fetch(Log.FORWARDED)
    assert [item.key for item in logs.take()] == ["cancelled", "urgent", "bulk2", "bulk1", "bulk3"]


def test_refusals_go_before_all_and_what_is_forwarded_keeps_its_key_s_order() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 5), "refused", "foreign", "foreign", "refused")
    logs.fetch()
    batch = logs.take(3)
    assert places(batch) == [(0, 1), (0, 4), (0, 2)]
    assert not any(item.decides for item in batch)
    second = logs.take()
    assert places(second) == [(0, 0)]
    logs.intake.done([*batch, *second])
    assert places(logs.take()) == [(0, 3)]


def test_one_item_of_a_key_in_a_batch_and_the_next_only_when_it_is_done() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 9), ("a", 1), ("b", 5))
    logs.fetch()
    first = logs.take()
    assert places(first) == [(0, 2), (0, 0)]
    assert logs.take() == []
    assert not logs.intake.ready()
    logs.intake.done(first)
    assert places(logs.take()) == [(0, 1)]


def test_a_key_s_items_of_two_logs_go_one_by_one_in_any_order() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 9))
    logs.add(Log.FORWARDED, ("a", 3))
    logs.fetch()
    logs.fetch(Log.FORWARDED)
    first = logs.take()
    assert [item.log for item in first] == [Log.FORWARDED]
    logs.intake.done(first)
    assert [item.log for item in logs.take()] == [Log.SUBMIT]


@settings(max_examples=40)
@given(st.data())
def test_each_item_once_in_its_key_s_order_and_offsets_only_over_applied_records(data: st.DataObject) -> None:
    """Random records (batches, gaps, any keys), fetches of any size, batches of any size, finished in any order."""
    logs = Logs()
    sizes: dict[tuple[Log, int], int] = {}
    applied: set[tuple[Log, int, int]] = set()
    under_way: list[list[Item]] = []
    order: dict[tuple[Log, str], list[int]] = {}
    whats = st.one_of(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), st.sampled_from(("refused", "foreign")))
    before = logs.intake.offsets()
    for _ in range(data.draw(st.integers(1, 25))):
        log = data.draw(st.sampled_from((Log.SUBMIT, Log.FORWARDED)))
        match data.draw(st.sampled_from(("add", "fetch", "take", "done"))):
            case "add":
                items = data.draw(st.lists(whats, max_size=4))
                sizes[log, logs.add(log, *items, gap=data.draw(st.integers(0, 2)))] = len(items)
            case "fetch":
                logs.fetch(log, data.draw(st.integers(1, 3)))
            case "take":
                batch = logs.take(data.draw(st.integers(1, 6)))
                keys = [item.key for item in batch if not isinstance(item.what, Rejection)]
                assert len(keys) == len(set(keys))
                under_way.append(batch)
            case "done" if under_way:
                batch = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
                for item in batch:
                    offset, index = places([item])[0]
                    assert (item.log, offset, index) not in applied
                    applied.add((item.log, offset, index))
                    if not isinstance(item.what, Rejection):
                        order.setdefault((item.log, item.key), []).append(item.position)
                logs.intake.done(batch)
        after = logs.intake.offsets()
        for name in (Log.SUBMIT, Log.FORWARDED):
            reader = logs.intake.readers[name]
            reached = unpack_position(after[name]).offset
            delivered = {
                o: n for (at, o), n in sizes.items() if at is name and o < unpack_position(reader.next_position).offset
            }
            left = {o for o, n in delivered.items() if any((name, o, i) not in applied for i in range(n))}
            assert after[name] >= before[name]
            assert reached == min(left, default=unpack_position(reader.next_position).offset)
            assert reader.waiting == sum((name, o, i) not in applied for o, n in delivered.items() for i in range(n))
            for o, n in delivered.items():
                for i in range(n):
                    assert reader.applied(position(o, i)) == ((name, o, i) in applied)
        before = after
    assert all(positions == sorted(positions) for positions in order.values())


def test_at_the_end_all_is_taken_and_the_offsets_stand_at_the_ends() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 1), ("a", 2), gap=3)
    logs.add(Log.SUBMIT)
    logs.add(Log.SUBMIT, ("a", 0), "refused", gap=5)
    logs.ends[Log.SUBMIT] += 2  # a transaction's marks, say
    logs.fetch()
    seen = []
    while batch := logs.take():
        seen += places(batch)
        logs.intake.done(batch)
    assert seen == [(10, 1), (3, 0), (3, 1), (10, 0)]
    assert logs.intake.offsets() == (position(13), START, START)
    assert logs.intake.reached((position(13), START, START))
    assert not logs.intake.reached((position(14), START, START))


def test_room_is_what_the_read_ahead_leaves_in_each_log() -> None:
    logs = Logs(read_ahead=3)
    logs.add(Log.SUBMIT, ("a", 1), ("b", 1))
    logs.add(Log.SUBMIT, ("c", 1), ("d", 1))
    logs.fetch(limit=1)
    assert [logs.intake.room(log) for log in Log] == [1, 3, 3]
    logs.fetch(limit=1)
    assert logs.intake.room(Log.SUBMIT) == 0  # a batch record may overshoot, it never counts below none
    logs.intake.done(logs.take(2))
    assert logs.intake.room(Log.SUBMIT) == 1


# Rule V.


def test_a_filing_of_a_batch_record_counts_when_i_remember_it_or_all_before_it_is_applied() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 1), ("b", 2))
    logs.fetch()
    filing_a, filing_b = (filing_number(Log.SUBMIT, position(0, index)) for index in (0, 1))
    first = logs.take(1)
    assert not logs.intake.counts(filing_a)
    logs.intake.remembered(filing_a)
    assert logs.intake.counts(filing_a)
    logs.intake.done(first)
    assert logs.intake.applied(filing_a)
    assert not logs.intake.counts(filing_b)
    logs.intake.done(logs.take())
    assert logs.intake.counts(filing_b)
    assert logs.intake.counts(filing_a)


# Rule W.


def test_an_outcome_waits_for_the_record_of_its_filing_and_what_follows_it_waits_behind() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 9))
    early = outcome_of(Log.SUBMIT, position(0))
    logs.add(Log.OUTCOMES, early)
    logs.add(Log.OUTCOMES, outcome_of(Log.OUTCOMES, START, key="a"))  # of the retry that the first one makes
    logs.add(Log.OUTCOMES, outcome_of(Log.FORWARDED, START - 1, key="b"))
    logs.fetch(Log.OUTCOMES)
    first = logs.take()
    assert [item.key for item in first] == ["b"]
    logs.intake.done(first)
    logs.fetch()
    submitted = logs.take()
    assert [item.log for item in submitted] == [Log.SUBMIT]
    logs.intake.done(submitted)
    second = logs.take()
    assert places(second) == [(0, 0)]
    assert second[0].what is early
    logs.intake.done(second)
    assert places(logs.take()) == [(1, 0)]


def test_an_outcome_may_name_an_item_whose_record_is_half_applied() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 1), ("b", 2))
    logs.add(Log.OUTCOMES, outcome_of(Log.SUBMIT, position(0, 0)))
    logs.fetch()
    logs.fetch(Log.OUTCOMES)
    logs.intake.done(logs.take(1))
    assert Log.OUTCOMES in [item.log for item in logs.take()]


@pytest.mark.parametrize("beyond", [0, 1, 1_000])
def test_an_outcome_that_names_no_record_is_refused_after_two_later_fetches(beyond: int) -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, "refused")
    logs.fetch()
    logs.add(Log.OUTCOMES, outcome_of(Log.SUBMIT, position(1 + beyond)))
    logs.add(Log.OUTCOMES, outcome_of(Log.SUBMIT, START - 1))
    logs.intake.done(logs.take())
    logs.fetch(Log.OUTCOMES)
    for _ in range(2):
        assert logs.take() == []
        logs.fetch()
    refused, behind = logs.take()
    assert isinstance(refused.what, Rejection)
    assert refused.what.code is Code.UNKNOWN_FILING
    assert isinstance(behind.what, Outcome)  # what stood behind it is let in
    logs.intake.done([behind])
    assert logs.intake.offsets()[Log.OUTCOMES] == START
    logs.intake.done([refused])
    assert logs.intake.offsets()[Log.OUTCOMES] == position(2)


def test_a_record_that_comes_in_time_keeps_its_outcome_from_being_refused() -> None:
    logs = Logs()
    logs.add(Log.OUTCOMES, outcome_of(Log.SUBMIT, position(0)))
    logs.fetch(Log.OUTCOMES)
    logs.fetch()
    logs.add(Log.SUBMIT, ("a", 1))
    for _ in range(4):
        logs.fetch()
    submitted = logs.take()
    assert [item.log for item in submitted] == [Log.SUBMIT]
    logs.intake.done(submitted)
    (outcome,) = logs.take()
    assert isinstance(outcome.what, Outcome)


def test_an_outcome_of_a_filing_that_is_read_but_not_applied_is_never_refused() -> None:
    logs = Logs()
    logs.add(Log.SUBMIT, ("a", 1))
    logs.fetch()
    logs.add(Log.OUTCOMES, outcome_of(Log.SUBMIT, position(0)))
    logs.fetch(Log.OUTCOMES)
    submitted = logs.take()
    for _ in range(5):
        logs.fetch()
        assert logs.take() == []
    logs.intake.done(submitted)
    assert [item.log for item in logs.take()] == [Log.OUTCOMES]


def test_a_read_that_overlaps_is_no_second_delivery_of_the_end() -> None:
    """The place to read on never goes back, whatever a fetch says."""
    logs = Logs()
    logs.intake.deliver(Log.SUBMIT, Fetched([], 5, 5, 1))
    logs.intake.deliver(Log.SUBMIT, Fetched([], 3, 3, 1))
    reader = logs.intake.readers[Log.SUBMIT]
    assert (reader.next_position, reader.end_position) == (position(5), position(5))
