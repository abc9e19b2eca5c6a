"""Several straight texts side by side, resumed in turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.dispatcher.activity import (
    RETRY_CAP_MS,
    RETRY_FIRST_MS,
    Activities,
    Asked,
    Steps,
    Until,
    insist,
)
from minutewheel.dispatcher.effects import Failed, LookUp, ReadEnds, ReadMarks
from minutewheel.store.errors import NotApplied

pytestmark = pytest.mark.pure

DOWN = Failed(NotApplied("down"))


class Scene:
    """Activities that write down what happens to them."""

    def __init__(self) -> None:
        self.activities = Activities()
        self.told: list[object] = []
        self.flag = False

    def asking(self, *effects: LookUp | ReadMarks) -> Steps[None]:
        for effect in effects:
            self.told.append((yield effect))
        self.told.append("end")

    def waiting(self, until: Until, name: str = "went on") -> Steps[None]:
        yield until
        self.told.append(name)


def test_an_activity_asks_is_answered_and_asks_on() -> None:
    scene = Scene()
    scene.activities.start("a", scene.asking(LookUp(["k"]), ReadMarks(5)))
    assert scene.activities.step(1) == [Asked("a", LookUp(["k"]))]
    assert scene.activities.step(2) == []  # it is asked once
    assert scene.activities.resume("a", "rows", 3) == [Asked("a", ReadMarks(5))]
    assert scene.activities.resume("a", "marks", 4) == []
    assert scene.told == ["rows", "marks", "end"]
    assert not scene.activities.running("a")


def test_a_pause_can_be_ended_and_a_condition_cannot() -> None:
    scene = Scene()
    scene.activities.start("a", scene.waiting(Until(at_ms=500)))
    scene.activities.start("b", scene.waiting(Until(lambda: scene.flag, at_ms=500), "b went on"))
    scene.activities.step(1)
    for name in ("a", "b", "nobody"):
        scene.activities.hasten(name)
    scene.activities.step(2)
    assert scene.told == ["went on"]
    scene.flag = True
    scene.activities.step(3)
    assert scene.told == ["went on", "b went on"]


def test_activities_do_not_wait_for_each_other() -> None:
    scene = Scene()
    scene.activities.start("a", scene.asking(LookUp(["a"])))
    scene.activities.start("b", scene.asking(LookUp(["b"])))
    assert scene.activities.step(1) == [Asked("a", LookUp(["a"])), Asked("b", LookUp(["b"]))]
    scene.activities.resume("b", 2, 2)
    assert scene.told == [2, "end"]
    assert scene.activities.running("a")


def test_one_that_waits_for_a_condition_goes_on_when_another_has_made_it_true() -> None:
    scene = Scene()

    def setting() -> Steps[None]:
        yield LookUp(["a"])
        scene.flag = True

    scene.activities.start("waits", scene.waiting(Until(lambda: scene.flag)))
    scene.activities.start("sets", setting())
    scene.activities.step(1)
    assert scene.told == []
    scene.activities.resume("sets", None, 2)
    assert scene.told == ["went on"]


def test_one_step_goes_on_until_nothing_moves() -> None:
    scene = Scene()
    reached = [0]

    def link(number: int) -> Steps[None]:
        yield Until(lambda: reached[0] == number)
        reached[0] += 1

    for number in (3, 1, 2, 0):
        scene.activities.start(f"link {number}", link(number))
    assert scene.activities.step(0) == []
    assert reached == [4]


@given(st.integers(1, 1_000), st.integers(0, 1_000), st.booleans())
def test_a_wait_holds_neither_before_its_time_nor_without_its_condition(at_ms: int, now_ms: int, holds: bool) -> None:
    scene = Scene()
    scene.activities.start("a", scene.waiting(Until(lambda: holds, at_ms=at_ms)))
    scene.activities.step(now_ms)
    assert scene.told == (["went on"] if holds and now_ms >= at_ms else [])


def test_the_next_time_is_the_earliest_that_is_still_to_come() -> None:
    scene = Scene()
    activities = scene.activities
    assert activities.next_ms() is None
    activities.start("a", scene.waiting(Until(lambda: False, at_ms=50)))
    activities.start("b", scene.waiting(Until(lambda: False, wake_ms=30)))
    activities.start("c", scene.asking(LookUp(["c"])))
    activities.step(0)
    assert activities.next_ms() == 30
    activities.step(30)
    assert activities.next_ms() == 50
    activities.step(50)
    assert activities.next_ms() is None


def test_the_answer_to_one_that_was_stopped_goes_nowhere() -> None:
    scene = Scene()
    scene.activities.start("a", scene.asking(LookUp(["a"])))
    scene.activities.start("b", scene.waiting(Until(at_ms=9)))
    scene.activities.step(0)
    scene.activities.stop("a", "b", "nobody")
    assert scene.activities.resume("a", 1, 1) == []
    assert scene.activities.step(10) == []
    assert scene.told == []
    assert scene.activities.next_ms() is None


def test_a_name_that_is_free_again_may_be_used_again_and_an_old_answer_is_not_its_own() -> None:
    scene = Scene()
    scene.activities.start("a", scene.asking(LookUp(["old"])))
    scene.activities.step(0)
    scene.activities.stop("a")
    scene.activities.start("a", scene.waiting(Until(at_ms=9)))
    scene.activities.step(1)
    assert scene.activities.resume("a", "for the old one", 2) == []
    assert scene.told == []


def test_one_may_stop_itself_and_all_others() -> None:
    scene = Scene()

    def ending() -> Steps[None]:
        scene.activities.stop("ends", "other")
        yield LookUp(["never"])

    scene.activities.start("other", scene.waiting(Until(at_ms=5)))
    scene.activities.start("ends", ending())
    assert scene.activities.step(0) == []
    assert scene.activities.step(9) == []
    assert scene.told == []


def test_what_an_activity_raises_reaches_the_caller() -> None:
    def broken() -> Steps[None]:
        yield Until()
        raise ValueError("a fault of ours")

    activities = Activities()
    activities.start("a", broken())
    with pytest.raises(ValueError, match="ours"):
        activities.step(0)


def test_insisting_asks_again_less_and_less_often_until_it_goes_well() -> None:
    scene = Scene()

    def insisting() -> Steps[None]:
        scene.told.append((yield from insist(scene.activities, ReadEnds())))

    scene.activities.start("a", insisting())
    assert scene.activities.step(0) == [Asked("a", ReadEnds())]
    now_ms, pauses = 0, []
    for _ in range(10):
        assert scene.activities.resume("a", DOWN, now_ms) == []
        next_ms = scene.activities.next_ms()
        assert next_ms is not None
        assert scene.activities.step(next_ms - 1) == []
        assert scene.activities.step(next_ms) == [Asked("a", ReadEnds())]
        pauses.append(next_ms - now_ms)
        now_ms = next_ms
    assert pauses == [min(RETRY_FIRST_MS << n, RETRY_CAP_MS) for n in range(10)]
    scene.activities.resume("a", (1, 2, 3), now_ms)
    assert scene.told == [(1, 2, 3)]


def test_a_clock_that_is_set_back_makes_no_pause_longer() -> None:
    scene = Scene()
    scene.activities.step(90_000)
    scene.activities.start("a", scene.waiting(Until(at_ms=90_100)))
    scene.activities.step(90_000)
    scene.activities.step(1_000)
    assert scene.told == []
    scene.activities.step(1_099)
    assert scene.told == []
    scene.activities.step(1_100)
    assert scene.told == ["went on"]
