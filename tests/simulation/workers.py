"""What do workers do with due tasks? A model of them on the real ledger, with deaths, redeliveries and foreign workers.

A task's payload is its *script*, one letter an attempt: `d` done, `f` failed, `s` snoozed, `x` failed for good. An
attempt of a version beyond its script is one too many. Done is finished in the ledger first and told then, all else
the other way round, as `worker.settling` has it.
"""

from functools import partial
from typing import TYPE_CHECKING

from minutewheel.broker.due import Delivered, parse_due
from minutewheel.broker.outcome import Outcome, outcome_message, outcome_of
from minutewheel.broker.wire import Record
from minutewheel.store.port import Finished, Granted
from msgspec.structs import replace

from .deeds import drive, short

if TYPE_CHECKING:
    from .world import World

KINDS = {"d": "done", "f": "failed", "s": "snoozed", "x": "failed"}
HOLD_MS = 30_000


class Workers:
    """All workers of the world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._offsets: dict[tuple[str, int], int] = {}
        self._holders = 0
        self.busy = 0
        self.attempts: dict[tuple[str, int], list[int]] = {}
        """(key, origin) → the distinct filings that were started, in their order."""
        self.effects: dict[tuple[str, int], list[int]] = {}
        """(key, origin) → the filings that had the effect."""

    def arrived(self, topic: str, partition: int) -> None:
        """A due record stands in a log: somebody polls it before long."""
        self._world.after(self._world.latency(), None, self._poll, topic, partition)

    def _poll(self, topic: str, partition: int) -> None:
        offset = self._offsets.get((topic, partition), 0)
        fetched = drive(self._world.broker.fetch(topic, partition, offset, 50, 0))
        self._offsets[topic, partition] = fetched.next_offset
        for record in fetched.records:
            self._deliver(record)
            if self._world.strikes("redelivery"):
                self.busy += 1
                self._world.after(self._world.random.randrange(1, 40_000), None, self._redeliver, record)

    def _redeliver(self, record: Record) -> None:
        self.busy -= 1
        self._deliver(record)

    def _deliver(self, record: Record) -> None:
        self.busy += 1
        self._claim(parse_due(record))

    def number(self, delivered: Delivered) -> int:
        """What the ledger knows a run by (rule K)."""
        return delivered.filing

    def _claim(self, delivered: Delivered) -> None:
        world = self._world
        self._holders += 1
        holder = f"h{self._holders}"
        place = (delivered.queue, delivered.shard, delivered.minute)
        claim = world.ledger.claim(place, [self.number(delivered)], holder, world.now_ms, world.now_ms + HOLD_MS)
        (answer,) = drive(claim)
        if isinstance(answer, Granted):
            world.say("start", delivered.key, short(delivered.filing), delivered.payload.decode())
            kind = self._next_in_script(delivered)
            work = self._die if world.strikes("worker death") else self._end
            world.after(world.random.randrange(5, 3_000), None, work, delivered, kind, answer.starts)
        elif isinstance(answer, Finished):
            self._tell(delivered, outcome_of(delivered, "done", starts=delivered.task.starts))
        else:
            world.after(answer.until_ms - world.now_ms + 1, None, self._claim, delivered)

    def _next_in_script(self, delivered: Delivered) -> str:
        version = delivered.key, delivered.origin
        filings = self.attempts.setdefault(version, [])
        if delivered.filing not in filings:
            filings.append(delivered.filing)
        number = filings.index(delivered.filing)
        script = delivered.payload.decode().partition(":")[2]
        if number >= len(script):
            self._world.fault("too many runs", delivered.key, [short(f) for f in filings], script)
            return "d"
        return script[number]

    def _die(self, delivered: Delivered, kind: str, _: int) -> None:
        """The worker is gone, maybe between its two last steps; its hold runs out and the record comes again."""
        if self._world.random.random() < 0.3:
            if kind == "d":
                self._finish(delivered, kind)
            else:
                self._tell(delivered, self._outcome(delivered, kind, 1))
                self.busy += 1
        self._world.after(self._world.random.randrange(1, 5_000), None, self._claim, delivered)

    def _end(self, delivered: Delivered, kind: str, starts: int) -> None:
        if kind == "d":
            self._finish(delivered, kind)
        self._tell(delivered, self._outcome(delivered, kind, starts), finish=kind != "d")

    def _finish(self, delivered: Delivered, kind: str) -> None:
        if kind == "d":
            effects = self.effects.setdefault((delivered.key, delivered.origin), [])
            if delivered.filing not in effects:  # the effect is recorded under the idempotency key
                effects.append(delivered.filing)
        place = (delivered.queue, delivered.shard, delivered.minute)
        drive(self._world.ledger.finish(place, [self.number(delivered)]))

    def _outcome(self, delivered: Delivered, kind: str, starts: int) -> Outcome:
        starts += delivered.task.starts - (kind == "s")
        delay_ms = 500 if kind == "s" else None
        outcome = outcome_of(
            delivered,
            KINDS[kind],
            starts=starts,
            reason=kind,
            retryable=kind != "x",
            delay_ms=delay_ms,  # type: ignore[arg-type]
        )
        if kind != "d" and self._world.random.random() < 0.2:  # a foreign worker names the record instead
            place = (delivered.topic, delivered.partition, delivered.offset)
            outcome = replace(outcome, headers=(), payload=None, due_at=place)
        return outcome

    def _tell(self, delivered: Delivered, outcome: Outcome, *, finish: bool = False) -> None:
        """Produce until it is acknowledged; it may stand there twice, late, or in another shard's partition."""
        world = self._world
        message = outcome_message(world.topics, outcome)
        # Only a foreign worker misses the shard's partition, and it does not say "done" of what it finds finished: so
        # what it says late can't be overtaken by a wrong word of its own. Ours names the partition (docs/outcomes.md).
        if len(world.numbers) > 1 and outcome.kind == "done" and world.random.random() < 0.05:
            message = replace(message, partition=world.random.choice(world.numbers))
            finish = False  # a worker that does not know the shards knows no ledger either
        world.say("outcome", delivered.key, outcome.kind, short(delivered.filing))
        if world.strikes("outcome lost"):
            again = partial(self._tell, delivered, outcome, finish=finish)
            world.after(world.random.randrange(50, 3_000), None, again)
            return
        if world.strikes("outcome twice"):
            self.busy += 1
            world.after(world.random.randrange(50, 20_000), None, self._again, message)
        drive(world.broker.produce([message]))
        if finish:
            self._finish(delivered, "")
        self.busy -= 1

    def _again(self, message: object) -> None:
        self.busy -= 1
        drive(self._world.broker.produce([message]))  # type: ignore[list-item]
