"""What must hold after every step, and at the end?

I1  nothing accepted is lost: at the end every task stands in a final state that its commands explain, and the
    version that stands ran the attempts that it needed
I2  fences, open minutes and offsets only grow, and progress changes only under the stored fence
I3  a member that is trusted for a shard has its lease, and a lease has one member
I4  nothing goes out before its due time: by its owner's clock, and by the world's where no clock is off
I5  one effect a version, no attempt beyond those needed; a command is answered, and in one way only; what was
    cancelled or replaced is not published after the answer
I6  memory within its bounds, and its counts equal what is there
and: in the end all past minutes are closed and dropped, nothing is held, no remainder was met at a close, nothing
was refused that was well formed, and without faults nothing is late and nothing is delivered twice.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from minutewheel.broker.due import parse_due
from minutewheel.broker.port import Produced
from minutewheel.broker.receipt import Answer, decode_receipt
from minutewheel.broker.wire import Message, Record
from minutewheel.dispatcher.due import Due
from minutewheel.dispatcher.shard import OVER, Shard
from minutewheel.store.position import log_of, position_of
from minutewheel.store.progress import Progress
from minutewheel.store.task import PlainRow, TaskRow, minute_of

from .deeds import short
from .member import Member

if TYPE_CHECKING:
    from .users import Command
    from .world import World

Filing = tuple[int, int]
"""A shard, and the number of a filing in it."""
REMOVES = {Answer.REPLACED, Answer.RESCHEDULED}
LATE_MS = 1_500
"""In the quiet tail deeds take 20 ms at the most and the applier waits for one checkpoint."""

FRESH = 5
"""The tasks that come in the quiet tail."""


class Invariants:
    """Watches one world. A breach goes to `World.fault`."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.rows: dict[str, tuple[int, TaskRow]] = {}
        self.published: dict[Filing, list[int]] = {}
        """Filing → when it came to stand in a due topic."""
        self.answers: dict[tuple[str, int], set[Answer]] = {}
        """(mark, first place) → what it was answered."""
        self.ended: set[Filing] = set()
        """Filings of which an outcome was answered."""
        self.replaced: list[tuple[str, int]] = []
        self._removed: dict[Filing, int] = {}
        self._followed: dict[Filing, Filing] = {}

    # What the taps tell.

    def wrote(self, shard: int, timestamp: int, rows: Sequence[PlainRow]) -> None:
        """Know the task rows as they stand, and which filing a new version put aside."""
        for row in rows:
            if isinstance(row, TaskRow):
                stood, old = self.rows.get(row.key, (-1, None))
                if timestamp < stood:
                    continue
                self.rows[row.key] = timestamp, row
                if old and old.state == "scheduled" and _puts_aside(row, old):
                    self._followed[shard, row.filing] = shard, old.filing

    def progressed(self, shard: int, fence: int, before: Progress, after: Progress) -> None:
        fault = self._world.fault
        grows = [
            (before.fence, after.fence),
            (before.open_minute, after.open_minute),
            (before.dropped_minute, after.dropped_minute),
            *zip(before.offsets, after.offsets, strict=True),
        ]
        if any(old > new for old, new in grows):
            fault("I2 went back", shard, grows)
        if before != after and fence != before.fence and fence <= before.fence:
            fault("I2 progress under a lower fence", shard, fence, before.fence)

    def stands(self, message: Message, produced: Produced) -> None:
        world = self._world
        topics = world.topics
        record = Record(
            message.topic,
            produced.partition,
            produced.offset,
            produced.time_ms,
            message.key,
            message.value,
            message.headers,
        )
        world.moved(message.topic, produced.partition, produced.offset + 1)
        if message.topic == topics.receipts:
            self._receipt(record)
        elif message.topic == topics.rejected:
            code = dict(message.headers)["mw_code"]
            world.fault("rejected", code, message.value)
        elif message.topic not in (*topics.logs, topics.dead):
            self._due(record)
            world.workers.arrived(message.topic, produced.partition)

    def _due(self, record: Record) -> None:
        world = self._world
        due = parse_due(record)
        times = self.published.setdefault((due.shard, due.filing), [])
        times.append(world.now_ms)
        world.scripts[due.key, due.origin] = due.payload.decode().partition(":")[2]
        world.say("published", due.key, short(due.filing), due.minute % 1000, due.payload.decode())
        if len(times) > 1:
            world.counts["duplicates"] += 1
            if not world.faulty or (world.calm_ms and times[0] > world.calm_ms):
                world.fault("delivered twice without a fault", due.key, short(due.filing))
        if not world.clocks_off and world.now_ms < due.due_ms:
            world.fault("I4 early by the world's clock", due.key, short(due.filing), due.due_ms - world.now_ms)
        removed_ms = self._removed.get((due.shard, due.filing))
        if removed_ms is not None:
            if world.rightful(due.shard):
                world.fault("I5 published after it was removed", due.key, short(due.filing), removed_ms)
            else:
                world.counts["ghosts"] += 1
        late_ms = world.now_ms - due.due_ms - LATE_MS - self._firing_stops_ms()
        if late_ms > world.fresh.get(due.key, late_ms):
            world.fault("late without a fault", due.key, late_ms)

    def _firing_stops_ms(self) -> int:
        """How long firing may stand still because so few marks may be unrecorded: that is a limit, not a fault."""
        limits = self._world.limits
        return limits.checkpoint_ms * (FRESH // limits.unrecorded_max)

    def _receipt(self, record: Record) -> None:
        receipt = decode_receipt(record)
        self._world.say("receipt", receipt.key, receipt.op, receipt.answer, receipt.receipt, short(receipt.filing))
        filing = record.partition, receipt.filing
        if receipt.op == "outcome":
            self.ended.add(filing)
            return
        at = receipt.at
        first = at.origin if at.origin >= 0 else record.partition << 61 | at.position
        answers = self.answers.setdefault((receipt.receipt, first), set())
        answers.add(receipt.answer)
        if len(answers) > 1 and not self._excused(receipt.key, answers):
            self._world.fault("I5 answered in two ways", receipt.key, receipt.receipt, sorted(answers))
        if receipt.answer is Answer.CANCELLED and receipt.state == "cancelled":  # told again, it may be replaced by now
            self._removed.setdefault(filing, self._world.now_ms)
        elif receipt.answer in REMOVES:
            self.replaced.append((receipt.key, receipt.filing))
            if filing in self._followed:
                self._removed.setdefault(self._followed[filing], self._world.now_ms)

    def _excused(self, key: str, answers: set[Answer]) -> bool:
        """Commands of one key that come through two logs have no order. *Unknown* leaves no trace, for there is no row
        to keep it: if the task comes through the other log before the command is met again, it is answered anew.
        """
        routes = {first >> 61 for one in self._world.users.commands if one.key == key for first in one.firsts}
        return len(answers) == 2 and len(routes) > 1 and Answer.UNKNOWN in answers

    # What members do.

    def due_taken(self, member: Member, dues: list[Due], now_ms: int) -> None:
        for due in dues:
            if due.due_ms > max(now_ms, member.clock.highest_ms):
                self._world.fault("I4 early by the owner's clock", member.name, short(due.filing), due.due_ms - now_ms)

    def acts(self, member: Member, shard: Shard) -> None:
        """It is about to hand something over for this shard, trusted."""
        holder = self._world.holder(shard.shard)
        if not member.slack and holder != member.name:
            self._world.fault("I3 trusted without the lease", member.name, shard.shard, holder)

    def memory(self, member: Member) -> None:
        budget = member.budget
        tasks = size = 0
        for shard in member.shards.values():
            if not shard.claimed or shard.life in OVER:
                continue
            memory = shard.context.memory
            apart = [*memory.held.values(), *memory.firing.values()]
            tasks += len(memory.wheel) + len(apart)
            size += memory.wheel.size_bytes + sum(len(due.record) for due in apart)
            counts: dict[int, int] = {}
            for due in apart:
                counts[due.minute] = counts.get(due.minute, 0) + 1
            for minute in {*counts, *memory.wheel._waiting}:
                here = counts.get(minute, 0) + memory.wheel.count(minute)
                if here != memory.count(minute):
                    self._world.fault("I6 miscounted minute", shard.shard, minute, here, memory.count(minute))
        if (tasks, size) != (budget.tasks, budget.bytes):
            self._world.fault("I6 miscounted", member.name, (tasks, size), (budget.tasks, budget.bytes))
        if tasks > budget.tasks_max + self._world.limits.page_rows:
            self._world.fault("I6 over the budget", member.name, tasks, budget.tasks_max)

    # The end.

    def unread(self) -> list[str]:
        """Which logs are not yet applied."""
        world = self._world
        left = []
        for number in world.numbers:
            ends = [world.ends.get((topic, number), 0) for topic in world.topics.logs]
            have = [position >> 14 & ((1 << 40) - 1) for position in world.ground.progress(number).offsets]
            if ends != have:
                left.append(f"shard {number} read to {have} of {ends}")
        return left

    def unquiet(self) -> list[str]:
        """What is not yet at rest."""
        world = self._world
        left = self.unread()
        if world.workers.busy:
            left.append(f"{world.workers.busy} workers busy")
        left += [f"{key} is {row.state}" for key, (_, row) in self.rows.items() if row.state == "scheduled"]
        for number in world.numbers:
            progress = world.ground.progress(number)
            past = minute_of(world.now_ms - world.close_grace_ms)
            if progress.open_minute < past:
                left.append(f"shard {number} open at {progress.open_minute % 1000} of {past % 1000}")
            if progress.dropped_minute < past - 1:
                left.append(f"shard {number} dropped to {progress.dropped_minute % 1000} of {past % 1000}")
        return left

    def at_end(self) -> None:
        world = self._world
        for shard in world.reigns:
            if shard.claimed and shard.context.counts.remainders:
                world.fault("remainder", shard.shard, shard.fence, shard.context.counts.remainders)
        for number in world.numbers:
            rows = world.ground.bucket_rows(number, minute_of(world.now_ms - world.close_grace_ms))
            if rows:
                world.fault("rows left in dropped minutes", number, rows)
        for member in world.members:
            if member.budget.tasks or member.budget.bytes:
                world.fault("I6 something is held", member.name, member.budget.tasks)
        for command in world.users.commands:
            self._answered(command)
        for key in world.users.keys:
            self._final(key)
        for key, filing in self.replaced:
            self._stands(key, filing)

    def _answered(self, command: "Command") -> None:
        for first in command.firsts if command.marked else ():
            if not self.answers.get((command.mark, first)):
                self._world.fault("I5 no receipt", command.kind, command.key, command.mark)

    def _final(self, key: str) -> None:
        world = self._world
        commands = [command for command in world.users.commands if command.key == key and command.firsts]
        if not any(command.kind == "submit" for command in commands):
            return
        if key not in self.rows:
            world.fault("I1 lost", key)
            return
        row = self.rows[key][1]
        version = key, row.origin
        attempts, effects = world.workers.attempts.get(version, []), world.workers.effects.get(version, [])
        script = self._script_of(row)
        allowed = {
            "done": len(effects) == 1 and (len(attempts) == len(script) or row.queue == "silent"),
            "dead": row.queue == "nowhere" or (script.endswith("x") and len(attempts) == len(script)),
            "cancelled": any(command.kind == "cancel" for command in commands),
            "expired": any(command.expires_ms for command in commands),
        }
        if not allowed.get(row.state, False):
            runs = [short(filing) for filing in attempts]
            world.fault("I1 wrong end", key, row.state, short(row.origin), short(row.filing), script, runs, effects)
        for (name, origin), some in world.workers.effects.items():
            if name == key and len(some) > 1:
                world.fault("I5 two effects", key, short(origin), [short(filing) for filing in some])

    def _script_of(self, row: TaskRow) -> str:
        """The script of the version that stands: from any due record of it."""
        return self._world.scripts.get((row.key, row.origin), "")

    def _stands(self, key: str, filing: int) -> None:
        """A version was told to stand; one of the same log that is older must not."""
        row = self.rows[key][1]
        if log_of(row.origin) == log_of(filing) and position_of(row.origin) < position_of(filing):
            self._world.fault("I5 replaced, but an older version stands", key, short(filing), short(row.origin))


def _puts_aside(row: TaskRow, old: TaskRow) -> bool:
    """Is this a new version in the place of `old`?

    Not so where a successor writes an older state again on its way to the present one (rule G): there the old filing is
    a retry of the very same version, or stands further on in a log.
    """
    further = row.submit_pos >= old.submit_pos and row.forwarded_pos >= old.forwarded_pos
    return further and row.origin != old.origin and not REMOVES.isdisjoint(row.answer.split("@"))
