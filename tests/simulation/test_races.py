"""Is the answer true when a cancel or a reschedule races with the firing of its task?

Ten thousand races of each kind in random histories, and the shortest histories of what they have found.
"""

import os
from collections import Counter
from unittest.mock import patch

import pytest
from minutewheel.dispatcher.context import Context

from .race import KINDS
from .races import Races
from .stage import PUBLISH, Stage

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(600)]

FIXED = range(8)
FRESH = 2


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_contradicts_what_happened(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    fresh = [1_000_000 + int.from_bytes(os.urandom(5), "big") for _ in range(FRESH)]
    counts: Counter[str] = Counter()
    for seed in (*FIXED, *fresh):
        counts.update(Races(kind, seed).play())
    told = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    with capsys.disabled():
        print(f"\nraces, fresh seeds {fresh}: {told}")
    assert counts[kind] >= 10_000
    done = "rescheduled" if kind == "reschedule" else "cancelled"
    for answer in (done, "too_late"):
        assert counts[f"{kind}: {answer}"] > counts[kind] // 20, answer
        assert counts[f"{kind}: {answer}, its owner going"] > counts[kind] // 200, answer
    assert kind == "retry" or counts[f"{kind}: unknown"] > counts[kind] // 200
    for what in ("killed", "moved", "frozen", "publishes refused", "publishes not acknowledged"):
        assert counts[what] >= 3, what


def test_the_races_find_an_owner_that_trusts_its_own_marks_alone() -> None:
    """What its predecessor may have published, and what was not acknowledged, is taken for not gone."""
    with patch.object(Context, "doubtful", lambda _self, _row: False):
        found = [seed for seed in range(1, 4) if contradicted(seed)]
    assert found


def contradicted(seed: int) -> bool:
    try:
        Races("cancel", seed).play()
    except AssertionError as error:
        return "cancelled, and it ran" in str(error)
    return False


def test_a_seed_gives_one_history() -> None:
    first, again = (Races("cancel", 3, traced=True) for _ in range(2))
    assert first.play() == again.play()
    assert first.trace
    assert first.trace == again.trace


@pytest.mark.parametrize("command", ["cancel", "reschedule"])
def test_what_a_predecessor_may_have_published_is_too_late(command: str) -> None:
    """`a` publishes and crashes before it marks that; `b` meets the command before it fires."""
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 500)
    stage.come_to(a, PUBLISH).do()
    stage.crash(a)
    mark = stage.ask(command, "x", due_ms=20_000 if command == "reschedule" else None)
    b = stage.owner()
    stage.pass_time(25_000, b)
    assert stage.answers(mark) == {"too_late"}
    assert stage.runs("x") == 1


@pytest.mark.parametrize("command", ["cancel", "reschedule"])
def test_what_was_published_without_an_acknowledgement_is_too_late(command: str) -> None:
    stage = Stage()
    a = stage.owner()
    stage.submit("x", 500)
    publishing = stage.come_to(a, PUBLISH)
    publishing.do()
    publishing.spoil(unknown=True)
    publishing.tell()
    a.gate.hold("mail", "paused", stage.now_ms)
    stage.pass_time(500, a)
    mark = stage.ask(command, "x", due_ms=20_000 if command == "reschedule" else None)
    stage.pass_time(1_000, a)
    a.gate.resume("mail", stage.now_ms)
    stage.pass_time(25_000, a)
    assert stage.answers(mark) == {"too_late"}
    assert stage.runs("x") == 1


def test_what_an_owner_has_itself_is_cancelled_until_it_lets_it_go() -> None:
    """Only what stood when it came and was due then is in doubt; what waits at the gate is not."""
    stage = Stage()
    a = stage.owner()
    stage.submit("later", 4_000)
    stage.pass_time(1_000, a)
    stage.crash(a)
    b = stage.owner()
    stage.pass_time(250, b)
    b.gate.hold("mail", "paused", stage.now_ms)
    stage.submit("new", 1_300)
    stage.pass_time(500, b)
    marks = [stage.ask("cancel", name) for name in ("new", "later")]
    stage.pass_time(1_000, b)
    b.gate.resume("mail", stage.now_ms)
    stage.pass_time(5_000, b)
    assert [stage.answers(mark) for mark in marks] == [{"cancelled"}, {"cancelled"}]
    assert stage.published == []


def test_the_first_owner_of_all_doubts_nothing() -> None:
    """Nobody was there before it who might have published what stands in the logs."""
    stage = Stage()
    stage.submit("x", 500)
    a = stage.owner()
    a.gate.hold("mail", "paused", stage.now_ms)
    stage.pass_time(1_000, a)
    mark = stage.ask("cancel", "x")
    stage.pass_time(1_000, a)
    a.gate.resume("mail", stage.now_ms)
    stage.pass_time(5_000, a)
    assert stage.answers(mark) == {"cancelled"}
    assert stage.published == []
