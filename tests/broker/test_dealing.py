import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.dealing import portions, share

pytestmark = pytest.mark.pure

TEAM = st.dictionaries(st.text("abcxyz", min_size=1, max_size=4), st.integers(0, 40), min_size=1, max_size=8)


@given(TEAM, st.integers(0, 200))
def test_shares_add_up_and_differ_by_one_at_most(held: dict[str, int], partitions: int) -> None:
    shares = [share("t", partitions, name, held) for name in held]
    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1


def deal(held: dict[str, int], partitions: int, name: str) -> bool:
    """One beat: give up what is too much or take what is free; whether anything moved."""
    due = share("t", partitions, name, held)
    free = partitions - sum(held.values())
    before = held[name]
    held[name] = min(before, due) if before > due else before + min(free, due - before)
    return held[name] != before


@given(TEAM, st.integers(0, 100), st.integers())
def test_beats_in_any_order_come_to_rest_with_everything_held(held: dict[str, int], spare: int, seed: int) -> None:
    partitions, dice = sum(held.values()) + spare, random.Random(seed)
    for _ in range(4):
        names = dice.sample(sorted(held), len(held))
        moved = [deal(held, partitions, name) for name in names]
    assert not any(moved)
    assert sum(held.values()) == partitions


@given(TEAM)
def test_a_member_that_leaves_moves_only_what_it_held(held: dict[str, int]) -> None:
    names = sorted(held)
    balanced = {name: share("t", 64, name, dict.fromkeys(names, 0)) for name in names}
    if len(names) > 1:
        balanced.pop(names[0])
        assert all(share("t", 64, name, balanced) >= balanced[name] for name in balanced)


def test_the_larger_shares_of_many_topics_fall_to_different_members() -> None:
    larger = Counter(
        name for n in range(300) for name in "abc" if share(f"topic-{n}", 1, name, dict.fromkeys("abc", 0))
    )
    assert min(larger.values()) > 50


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(0, 200))
def test_portions_are_as_even_as_the_partitions_allow(available: list[int], limit: int) -> None:
    taken = portions(available, limit)
    assert all(0 <= some <= there for some, there in zip(taken, available, strict=True))
    assert sum(taken) == min(limit, sum(available))
    unsated = [some for some, there in zip(taken, available, strict=True) if some < there]
    assert not unsated or max(taken) - min(unsated) <= 1
