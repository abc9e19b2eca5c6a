"""A bench for one shard: the real shard, gate and performer over the real twins, inline, with time moved by hand."""

from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from minutewheel.broker.compose import Composer, Submission
from minutewheel.broker.due import Delivered, parse_due
from minutewheel.broker.errors import BrokerError, Unpublishable
from minutewheel.broker.outcome import OutcomeKind, outcome_message, outcome_of
from minutewheel.broker.partitioner import shard_of
from minutewheel.broker.port import Produced
from minutewheel.broker.receipt import Receipt, decode_receipt
from minutewheel.broker.sqlite import SqliteBroker
from minutewheel.broker.submission import Decoder
from minutewheel.broker.wire import Message, Record, Topics
from minutewheel.dispatcher.activity import Asked
from minutewheel.dispatcher.context import Limits
from minutewheel.dispatcher.decoding import decoding
from minutewheel.dispatcher.effects import Effect, Failed
from minutewheel.dispatcher.gate import Gate
from minutewheel.dispatcher.memory import Budget
from minutewheel.dispatcher.perform import Performer
from minutewheel.dispatcher.publishing import landed, outgoing
from minutewheel.dispatcher.shard import OVER, Shard
from minutewheel.store.errors import NotApplied
from minutewheel.store.position import Log, pack_position
from minutewheel.store.record import unpack
from minutewheel.store.sqlite import SqliteStore
from minutewheel.store.sqlite_connection import at_once
from minutewheel.store.task import SHARDS, TaskRow

SHARD = 3
START_MS = 1_790_000_000_000 // 60_000 * 60_000
TOPICS = Topics()
IDS = [f"t{n}" for n in range(64 * 1_200) if shard_of(f"default/t{n}") == SHARD]


def now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The answer of what never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


class Bench:
    """An installation of which one shard has an owner. `shard` is the reign that `claim` began last."""

    START_MS = START_MS
    SHARD = SHARD
    IDS = IDS
    TOPICS = TOPICS

    def __init__(self, *, max_message_bytes: int = 1_000_000, queues: tuple[str, ...] = ("mail",)) -> None:
        self.now_ms = START_MS
        self.store: SqliteStore = now(SqliteStore.open(":memory:", at_once, synchronous="OFF"))
        self.broker: SqliteBroker = now(self._open_broker(max_message_bytes))
        self.queues = set(queues)
        self.silent: set[str] = set()
        self.topics = dict.fromkeys((*TOPICS.fixed, *map(TOPICS.due, queues)), SHARDS)
        now(self.broker.create_topics(self.topics))
        starts = (pack_position(1, 0),) * 3
        now(self.store.set_up(START_MS // 60_000, [starts] * SHARDS))
        self.composer = Composer(TOPICS)
        self.performer = Performer(self.store, self.broker, TOPICS)
        self.gate = Gate()
        self.fence = 0
        self.fired_ms: dict[str, list[int]] = {}
        self.peak = 0
        self.due_bytes_max = max_message_bytes
        self.answers: Callable[[Asked, Any], Any] = lambda _, answer: answer
        self.down: Callable[[Effect], bool] = lambda _: False

    async def _open_broker(self, max_message_bytes: int) -> SqliteBroker:
        return await SqliteBroker.open(
            ":memory:", at_once, lambda: self.now_ms, synchronous="OFF", max_message_bytes=max_message_bytes
        )

    def close(self) -> None:
        now(self.store.close())
        now(self.broker.close())

    # What users do.

    def submit(self, task_id: str, due_ms: int, **more: Any) -> None:
        more = {"queue": "mail", "payload": b"body", "receipt": "r"} | more
        self.produce(self.composer.submit(Submission(id=task_id, due=due_ms, **more)))

    def submit_many(self, dues: dict[str, int], **more: Any) -> None:
        more = {"queue": "mail"} | more
        items = [self.composer.item(Submission(id=task_id, due=due_ms, **more)) for task_id, due_ms in dues.items()]
        self.produce(*self.composer.batches(items))

    def produce(self, *messages: Message) -> None:
        answers = now(self.broker.produce(messages))
        assert all(isinstance(answer, Produced) for answer in answers), answers

    def report(self, delivered: Delivered, kind: OutcomeKind = "done", *, starts: int = 1, **more: Any) -> None:
        """What a worker says."""
        self.produce(outcome_message(TOPICS, outcome_of(delivered, kind, starts=starts, **more)))

    # What is there to see.

    def records(self, topic: str) -> list[Record]:
        partitions = range(self.topics[topic])
        return [r for p in partitions for r in now(self.broker.fetch(topic, p, 0, 100_000, 0)).records]

    def delivered(self, queue: str = "mail") -> list[Delivered]:
        return [parse_due(record) for record in self.records(TOPICS.due(queue))]

    def receipts(self) -> list[Receipt]:
        return [decode_receipt(record) for record in self.records(TOPICS.receipts)]

    def said(self) -> list[str]:
        return [receipt.answer for receipt in self.receipts()]

    def row(self, task_id: str) -> TaskRow:
        (row,) = now(self.store.tasks(SHARD, [f"default/{task_id}"]))
        return row

    def progress(self) -> Any:
        return now(self.store.progress(SHARD, 1 << 40))

    def read(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return now(coroutine)

    # What the owner does.

    def claim(self, *, limits: Limits | None = None, budget: Budget | None = None, fence: int | None = None) -> Shard:
        """Begin a reign; what the last one has at the gate is left to it."""
        self.fence = fence or self.fence + 1
        self.gate = Gate()
        self.budget = budget or Budget()
        self.shard = Shard(
            shard=SHARD,
            fence=self.fence,
            member=f"member {self.fence}",
            now_ms=self.now_ms,
            topics=TOPICS,
            decode=decoding(SHARD, Decoder(topics=TOPICS), TOPICS, self.queues.__contains__),
            budget=self.budget,
            limits=limits or Limits(),
        )
        self.shard.clock_confirmed = True
        return self.shard

    def settle(self, *, publish: bool = True) -> None:
        """Let the owner do all that it can do at this moment."""
        while self._turn(publish=publish):
            pass

    def run(self, span_ms: int, *, publish: bool = True) -> None:
        """Let so much time pass: the owner acts whenever it asked to, and each second."""
        end_ms = self.now_ms + span_ms
        self.settle(publish=publish)
        while self.now_ms < end_ms:
            next_ms = self.shard.next_ms()
            self.now_ms = min(end_ms, self.now_ms + 1_000, max(self.now_ms + 1, next_ms or end_ms))
            self.settle(publish=publish)

    def settle_logs(self) -> None:
        """Only read and fire; what the shard asks for is left to the test."""
        for log in Log:
            self._read(log)
        self.gate.offer(self.shard.take_due(self.now_ms, 2_000), self.now_ms)
        self._publish()

    def _turn(self, *, publish: bool) -> bool:
        moved = self._perform(self.shard.step(self.now_ms))
        for log in Log:
            moved |= self._read(log)
        dues = self.shard.take_due(self.now_ms, 2_000)
        self.gate.offer(dues, self.now_ms)
        self.peak = max(self.peak, self.budget.tasks)
        return bool(dues) | moved | (publish and self._publish())

    def _perform(self, asked: list[Asked]) -> bool:
        waiting = deque(asked)
        while waiting:
            one = waiting.popleft()
            down = self.down(one.effect)
            answer = Failed(NotApplied("down")) if down else now(self.performer.perform(SHARD, one.effect))
            answer = self.answers(one, answer)
            waiting.extend(self.shard.resume(one.activity, answer, self.now_ms))
        return bool(asked)

    def _read(self, log: Log) -> bool:
        wanted = self.shard.wants(log)
        if wanted is None:
            return False
        fetched = now(self.broker.fetch(TOPICS.logs[log], SHARD, wanted.offset, min(wanted.limit, 500), 0))
        self.shard.deliver(log, fetched)
        return bool(fetched.records)

    def _publish(self) -> bool:
        if self.shard.life in OVER or not (dues := self.gate.release(self.now_ms, 2_000)):
            return False
        self.shard.released(dues)
        sent = outgoing(dues, self.now_ms, TOPICS, self.silent)
        while sent:
            result = landed(sent, self._hand_over([out.message for out in sent]), TOPICS)
            assert not result.back
            self.shard.fired(result.fired, self.now_ms)
            sent = result.next
        for due in dues:
            task_id = unpack(due.record).key.partition("/")[2]
            self.fired_ms.setdefault(task_id, []).append(self.now_ms)
        return True

    def _hand_over(self, messages: list[Message]) -> list[Produced | BrokerError]:
        """To a broker whose due topics may take less than its others, as topics of Kafka can be told to."""
        due = [m.topic.startswith(TOPICS.due("")) and len(m.value or b"") > self.due_bytes_max for m in messages]
        taken = iter(now(self.broker.produce([m for m, large in zip(messages, due, strict=True) if not large])))
        return [Unpublishable("too_large", "the topic takes less") if large else next(taken) for large in due]

    def counts(self) -> Counter[str]:
        """How often each task was published."""
        return Counter(delivered.id for delivered in self.delivered())


@pytest.fixture
def benches() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**more: Any) -> Bench:
        made.append(Bench(**more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def bench(benches: Callable[..., Bench]) -> Bench:
    return benches()
