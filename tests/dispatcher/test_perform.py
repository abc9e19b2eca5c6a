"""Which call to which port each effect is, and what comes back."""

from typing import Any, get_args

import pytest
from minutewheel.broker.port import Produced
from minutewheel.broker.wire import Message
from minutewheel.dispatcher import effects as ask
from minutewheel.store.errors import ClaimRefused
from minutewheel.store.position import pack_position, write_timestamp
from minutewheel.store.progress import Checkpoint, Closing, NewMarks
from minutewheel.store.task import BucketRow, DeadLetter, TaskRow

pytestmark = pytest.mark.pure

SHARD = 3
START = pack_position(1, 0)
TASK = TaskRow("acme/1", 8, 8, 30, 1_800_000, "dead", 1, "mail", b"d")
ROW = BucketRow(30, 0, 1_800_000, 8, b"record")
LETTER = DeadLetter("acme/1", 8, "mail", "no", 1, 5, b"record")


def test_every_effect_is_performed_and_what_is_written_can_be_read(bench: Any) -> None:
    minute = bench.START_MS // 60_000
    history: list[tuple[ask.Effect, Any]] = [
        (ask.Claim(4, "me", 1 << 40), None),
        (ask.ReadEnds(), (START, START, START)),
        (ask.Write(write_timestamp(4, 1), [TASK, ROW, LETTER]), None),
        (ask.LookUp(["acme/1", "acme/2"]), [TASK]),
        (ask.ReadFilings([(30, 1_800_000, 8), (30, 1_800_000, 9)]), [ROW]),
        (ask.ReadLetters(["acme/1"]), [LETTER]),
        (ask.ReadPage(30, 0, (-1, -1), 9), [ROW]),
        (ask.Record(4, Checkpoint(4 << 32 | 1, (START,) * 3, minute, minute, (NewMarks(minute, (8,)),))), True),
        (ask.Record(3, Checkpoint(3 << 32 | 9, (START,) * 3, minute, minute)), False),
        (ask.ReadMarks(minute), None),
        (ask.ReadProgress(), None),
        (ask.PutClosing(Closing(30, 1, 1, 0, 0, 5)), None),
        (ask.Drop(30, 1, write_timestamp(4, 2)), None),
        (ask.ReadPage(30, 0, (-1, -1), 9), []),
        (ask.Produce([Message(bench.TOPICS.receipts, b"k", b"v", (), 0)]), None),
        (ask.ReadDue([(bench.TOPICS.receipts, 0, 0), (bench.TOPICS.receipts, 0, 7), ("none", 0, 0)]), None),
    ]
    answers = {}
    for effect, expected in history:
        answer = bench.read(bench.performer.perform(SHARD, effect))
        assert not isinstance(answer, ask.Failed), (effect, answer)
        answers[type(effect)] = answer
        if expected is not None:
            assert answer == expected, effect
    assert answers[ask.Claim].fence == answers[ask.ReadProgress].fence == 4
    assert answers[ask.ReadMarks][minute].fired == {8}
    assert [type(one) for one in answers[ask.Produce]] == [Produced]
    assert [(record.offset, record.value) for record in answers[ask.ReadDue]] == [(0, b"v")]
    assert bench.read(bench.store.closing(SHARD, 30)).digest == 5
    assert {type(effect) for effect, _ in history} == set(get_args(ask.Effect))


def test_what_a_port_refuses_comes_back_as_failed(bench: Any) -> None:
    bench.read(bench.store.claim(SHARD, 9, "other", -1))
    answer = bench.read(bench.performer.perform(SHARD, ask.Claim(4, "me", -1)))
    assert isinstance(answer, ask.Failed)
    assert isinstance(answer.error, ClaimRefused)
    assert answer.error.stored == 9
    bench.read(bench.store.close())
    assert isinstance(bench.read(bench.performer.perform(SHARD, ask.LookUp(["k"]))), ask.Failed)


def test_a_fault_of_ours_is_raised_and_not_taken_for_a_refusal(bench: Any) -> None:
    with pytest.raises(TypeError):
        bench.read(bench.performer.perform(SHARD, ask.PutClosing(None)))  # type: ignore[arg-type]
