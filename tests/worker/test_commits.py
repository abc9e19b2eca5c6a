import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.worker.commits import Commits

pytestmark = pytest.mark.pure
MAIL = ("due.mail", 3)


@st.composite
def finishings(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    delivered = sorted(draw(st.sets(st.integers(0, 200), min_size=1, max_size=40)))
    return delivered, draw(st.permutations(delivered))


@given(finishings())
def test_the_commit_is_always_the_first_unfinished_delivery_or_the_end(case: tuple[list[int], list[int]]) -> None:
    delivered, order = case
    commits = Commits()
    for offset in delivered:
        commits.taken(MAIL, offset)
    done: set[int] = set()
    for offset in order:
        commits.finished(MAIL, offset)
        done.add(offset)
        before = [o for o in delivered if all(p in done for p in delivered if p <= o)]
        assert commits.due().get(MAIL) == (before[-1] + 1 if before else None)
    assert len(commits) == 0


@given(st.lists(st.tuples(st.sampled_from(["take", "finish", "again", "lose", "commit"]), st.integers(0, 30))))
def test_nothing_unfinished_is_ever_committed(steps: list[tuple[str, int]]) -> None:
    """A model of one partition: what it delivered since it was last assigned, and what of that is open."""
    commits, unfinished, end, floor = Commits(), set[int](), 0, 0
    for step, number in steps:
        if step == "take":
            end += 1 + number % 3
            commits.taken(MAIL, end)
            unfinished.add(end)
        elif step == "finish" and unfinished:
            offset = sorted(unfinished)[number % len(unfinished)]
            commits.finished(MAIL, offset)
            unfinished.discard(offset)
        elif step == "again" and end > floor:
            # Lost and back between two polls: delivered from the last commit on once more.
            commits.taken(MAIL, floor + 1)
            unfinished, end = {floor + 1}, floor + 1
        elif step == "lose":
            commits.keep(())
            unfinished, end = set(), floor
            assert commits.due() == {}
        elif step == "commit":
            offsets = commits.due()
            commits.committed(offsets)
            floor = max(floor, offsets.get(MAIL, 1) - 1)
            assert commits.due() == {}
        for offset in commits.due().values():
            assert all(offset <= o for o in unfinished)


def test_a_late_finish_of_a_lost_partition_is_nothing() -> None:
    commits = Commits()
    commits.taken(MAIL, 7)
    commits.keep({("due.mail", 4)})
    commits.finished(MAIL, 7)
    assert commits.due() == {}


def test_a_commit_that_went_well_does_not_hide_a_later_one() -> None:
    commits = Commits()
    commits.taken(MAIL, 1)
    commits.taken(MAIL, 2)
    commits.finished(MAIL, 1)
    sent = commits.due()
    commits.finished(MAIL, 2)
    commits.committed(sent)
    assert commits.due() == {MAIL: 3}
