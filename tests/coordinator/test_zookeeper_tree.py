import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.coordinator import FENCE_LIMIT, FencesExhausted
from minutewheel.coordinator.zookeeper_tree import Holder, Tree, fence_from, next_fence, shard_of

pytestmark = pytest.mark.pure

FENCES = st.integers(0, FENCE_LIMIT - 2)


def test_the_places_and_their_parents_in_the_order_in_which_they_are_made() -> None:
    tree = Tree("/apps/minutewheel")
    assert tree.lasting() == [
        "/apps",
        "/apps/minutewheel",
        "/apps/minutewheel/members",
        "/apps/minutewheel/leaving",
        "/apps/minutewheel/owners",
        "/apps/minutewheel/fences",
    ]
    assert tree.member("ada") == "/apps/minutewheel/members/ada"
    assert tree.leaver("ada") == "/apps/minutewheel/leaving/ada"
    assert tree.owner(7) == "/apps/minutewheel/owners/7"
    assert tree.fence(7) == "/apps/minutewheel/fences/7"


@pytest.mark.parametrize("root", ["", "/", "minutewheel", "/a/", "//a", "/a//b", "/..", "/zookeeper"])
def test_what_is_no_path_of_ours_is_refused(root: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        Tree(root)


@given(given_last=FENCES, above=FENCES)
def test_the_next_fence_is_above_both(given_last: int, above: int) -> None:
    assert next_fence(3, str(given_last).encode(), above) == max(given_last, above) + 1


@given(st.binary())
def test_whatever_stands_there_the_next_fence_is_above_what_was_asked(stored: bytes) -> None:
    try:
        assert next_fence(3, stored, 17) > 17
    except FencesExhausted:
        assert fence_from(stored) >= FENCE_LIMIT - 1


def test_what_is_missing_or_unreadable_counts_as_none() -> None:
    assert [next_fence(3, stored, 0) for stored in (None, b"", b"rubbish", b"-5", b"\xff")] == [1] * 5


@pytest.mark.parametrize(("stored", "above"), [(FENCE_LIMIT - 1, 0), (0, FENCE_LIMIT - 1), (FENCE_LIMIT**2, 0)])
def test_a_fence_that_would_not_fit_is_refused(stored: int, above: int) -> None:
    with pytest.raises(FencesExhausted, match="shard 3"):
        next_fence(3, b"%d" % stored, above)


@given(st.integers(0, 10**6))
def test_a_shard_is_known_by_its_number(shard: int) -> None:
    assert shard_of(str(shard)) == shard


@pytest.mark.parametrize("name", ["", "x", "-1", "07", "1.0", "٣", " 1"])
def test_what_does_not_belong_there_is_no_shard(name: str) -> None:
    assert shard_of(name) is None


def test_only_what_my_own_session_made_bears_my_name() -> None:
    assert Holder("ada", 1).as_seen_by("ada", 1) == "ada"
    assert Holder("bob", 2).as_seen_by("ada", 1) == "bob"
    assert Holder("ada", 2).as_seen_by("ada", 1) not in {"ada", "bob"}
