"""What goes wrong without each rule of the shard? Each is switched off by a double at its seam, never in the product.

`python -m tests.simulation.ablations [RULE …] [--histories N]` looks for the first random history that fails without
the rule. Rule U has no seam: the applier works one batch at a time, and lets go of it after its receipts.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from heapq import heappop
from typing import Any
from unittest.mock import patch
from zlib import crc32

from minutewheel.dispatcher import applier, closer, decision, teller
from minutewheel.dispatcher.context import Context
from minutewheel.dispatcher.intake import Intake
from minutewheel.dispatcher.journal import Journal
from minutewheel.dispatcher.memory import Memory
from minutewheel.dispatcher.shard import Shard
from minutewheel.store import sqlite_progress
from minutewheel.store.position import write_timestamp
from msgspec.structs import replace

from .workers import Workers
from .world import Breach, World

Doubles = dict[tuple[object, str], Any]


def rows_before_buckets() -> Doubles:
    def write(context: Context, decided: Any) -> Any:
        filed = [(one, applier._placed(context, one)) for one in decided if one.file]
        yield from applier._put(context, [one.row for one in decided if one.row])
        yield from applier._put(context, [*(row for _, row in filed), *(one.letter for one in decided if one.letter)])
        yield from applier._put(context, [replace(one.settles, record=b"") for one in decided if one.settles])
        for one, row in filed:
            context.filed(row.minute)
            context.intake.remembered(one.item.filing)
            if context.journal.kind(row.minute, row.filing) is None and not context.journal.shut(row.minute):
                context.memory.remember(row)

    return {(applier, "_write"): write}


def marked_at_release() -> Doubles:
    released = Shard.released

    def release(self: Shard, dues: Any) -> None:
        dues = list(dues)
        released(self, dues)
        for due in dues:
            self.context.journal.mark(due.minute, [due.filing], "fired")

    return {(Shard, "released"): release}


def closed_unproven() -> Doubles:
    def prove(context: Context, minute: int) -> Any:
        context.journal.prove(minute, 0)
        yield from ()

    return {(closer, "_prove"): prove}


def due_from_now() -> Doubles:
    decide = applier._decide

    def late(context: Context, items: Any) -> Any:
        for item in items:
            item.time_ms = context.now_ms
        return (yield from decide(context, items))

    return {(applier, "_decide"): late}


def progress_without_fence() -> Doubles:
    record = sqlite_progress.record

    def unfenced(db: Any, shard: int, _: int, checkpoint: Any) -> bool:
        return record(db, shard, sqlite_progress._stored(db, shard).fence, checkpoint)

    return {(sqlite_progress, "record"): unfenced}


def not_written_again() -> Doubles:
    again = decision._again

    def told_only(item: Any, facts: Any, receipt: Any) -> Any:
        before = again(item, facts, receipt)
        return decision.Decision(item, answer=before.answer, receipt=before.receipt)

    return {(decision, "_again"): told_only}


def ledger_by_attempt() -> Doubles:
    def number(_: Workers, delivered: Any) -> int:
        return crc32(delivered.key.encode()) << 16 | delivered.attempt

    return {(Workers, "number"): number}


def reach_after_reading() -> Doubles:
    begin, end = Memory.begin, Memory.end

    def begins(self: Memory, minute: int) -> None:
        reach = self.reach
        begin(self, minute)
        self.reach = reach

    def ends(self: Memory, minute: int, *, forget: Any = None) -> None:
        end(self, minute, forget=forget)
        self.reach = max(self.reach, minute)

    return {(Memory, "begin"): begins, (Memory, "end"): ends}


def unchecked(which: Callable[[Any], bool]) -> Doubles:
    decide = applier._decide

    def decided(context: Context, items: Any) -> Any:
        found = yield from decide(context, items)
        for one in found:
            if which(one):
                one.existing = False
        return found

    return {(applier, "_decide"): decided}


def forgotten_before_marked() -> Doubles:
    return unchecked(lambda one: bool(one.remove or one.fired))


def changed_unchecked() -> Doubles:
    return unchecked(lambda one: not (one.remove or one.fired))


def offset_first() -> Doubles:
    take, done = Intake.take, Intake.done

    def takes(self: Intake, limit: int, **chosen: Any) -> Any:
        batch = take(self, limit, **chosen)
        done(self, batch)
        return batch

    return {(Intake, "take"): takes, (Intake, "done"): lambda _self, _items: None}


def receipt_first() -> Doubles:
    decide = applier._decide

    def told(context: Context, items: Any) -> Any:
        found = yield from decide(context, items)
        yield from teller._produce(context, teller._messages(context, [], found))
        return found

    return {(applier, "_decide"): told}


def closed_before_caught_up() -> Doubles:
    return {(Intake, "reached"): lambda _self, _ends: True}


def decided_again() -> Doubles:
    decide = applier.decide

    def anew(item: Any, facts: Any) -> Any:
        if facts.row is not None:
            row = replace(facts.row, submit_pos=-1, forwarded_pos=-1, outcome_pos=-1)
            facts = replace(facts, row=row)
        return decide(item, facts)

    return {(applier, "decide"): anew}


def answers_unwritten() -> Doubles:
    def told(item: Any, _: Any, answer: Any, receipt: Any, **__: Any) -> Any:
        return decision.Decision(item, answer=answer, receipt=receipt)

    return {(decision, "_without_effect"): told}


def timestamps_without_fence() -> Doubles:
    counter = itertools.count(1)
    return {(Journal, "timestamp"): lambda _self: write_timestamp(1, next(counter))}


def all_rows_count() -> Doubles:
    return {(Journal, "valid"): lambda _self, _filing, _fence: True}


def outcomes_at_once() -> Doubles:
    def head(self: Intake, item: Any) -> None:
        with patch.object(Intake, "applied", lambda _self, _filing: True):
            original(self, item)

    original = Intake._head
    return {(Intake, "_head"): head}


def closed_before_applied() -> Doubles:
    return {(Journal, "covered"): lambda _self, _minute: True}


def filed_where_it_stood() -> Doubles:
    placed = applier._placed

    def stays(context: Context, one: Any) -> Any:
        if one.file.minute is None:
            return placed(context, one)
        with patch.object(Journal, "shut", lambda _self, _minute: False):
            return placed(context, one)

    return {(applier, "_placed"): stays}


def several_of_a_key() -> Doubles:
    """One item of each log, though they be of one key."""

    def take(self: Intake, limit: int, *, ends: bool = True) -> Any:
        batch = [self._plain.popleft() for _ in range(min(limit, len(self._plain)))]
        while ends and self._ends and len(batch) < limit:
            batch.append(self._ends.popleft()[2])
        while self._heads and len(batch) < limit:
            batch.append(heappop(self._heads)[2])
        return batch

    return {(Intake, "take"): take}


RULES: dict[str, tuple[str, Callable[[], Doubles]]] = {
    "A": ("a task row is written before its bucket row", rows_before_buckets),
    "B": ("a filing is marked when it is released", marked_at_release),
    "C": ("a minute closes without proof", closed_unproven),
    "D": ("a retry's due time counts from now", due_from_now),
    "F": ("progress is written under any fence", progress_without_fence),
    "G": ("what a predecessor did is not written again", not_written_again),
    "K": ("the ledger's key is the attempt number", ledger_by_attempt),
    "L": ("the reach moves after the read", reach_after_reading),
    "M": ("a row forgets a filing before its mark is durable", forgotten_before_marked),
    "N": ("an existing row is changed without a checkpoint since it was read", changed_unchecked),
    "O": ("an offset is free before its record's effects", offset_first),
    "P": ("a receipt is sent before what it says is durable", receipt_first),
    "Q": ("minutes close before the logs are applied up to the claim", closed_before_caught_up),
    "R": ("a record that was decided on is decided on again", decided_again),
    "S": ("an answer without effect is not written", answers_unwritten),
    "T": ("timestamps carry no fence", timestamps_without_fence),
    "X": ("items of one key that come from two logs are decided together", several_of_a_key),
    "V": ("every bucket row counts", all_rows_count),
    "W": ("an outcome does not wait for its filing's record", outcomes_at_once),
    "Y": ("a minute closes before what filed in it is applied", closed_before_applied),
    "Z": ("a filing met in replay is written into its shut minute", filed_where_it_stood),
}


@contextmanager
def without(rule: str) -> Iterator[None]:
    """The code with one rule switched off."""
    with ExitStack() as stack:
        for (target, name), double in RULES[rule][1]().items():
            stack.enter_context(patch.object(target, name, double))
        yield


def fails(seed: int) -> str | None:
    """What is broken in this history, if anything; an assertion of the code itself counts."""
    try:
        World(seed).run()
    except Breach as breach:
        return str(breach)
    except (AssertionError, KeyError) as error:
        return f"{type(error).__name__} in the code"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.ablations")
    parser.add_argument("rules", nargs="*", default=list(RULES))
    parser.add_argument("--histories", type=int, default=300)
    options = parser.parse_args()
    for rule in options.rules:
        with without(rule):
            found = next(((seed, why) for seed in range(options.histories) if (why := fails(seed))), None)
        seen = f"seed {found[0]}: {found[1]}" if found else f"no fault found in {options.histories} histories"
        print(f"| {rule} | {RULES[rule][0]} | {seen} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
