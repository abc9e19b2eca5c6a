"""Do the two sides agree when each task fired once, and on nothing else?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.loadtest.virtual.accounts import Accounts, Digest, hashes_of

pytestmark = pytest.mark.pure

MINUTE = 7
KEYS = [b"t%04d" % number for number in range(2_000)]


def closed(fired: list[bytes], *, early: int = 0, cancelled: int = 0) -> Accounts:
    """A minute in which all keys were submitted, the first few cancelled, and these fired."""
    accounts = Accounts()
    accounts.submitted(MINUTE, KEYS)
    for key in KEYS[:cancelled]:
        accounts.taken_back(MINUTE, key, moved=False)
    accounts.fired(MINUTE, fired, hashes_of(fired), early, 0)
    accounts.close(MINUTE, len(KEYS), len(KEYS), len(fired), cancelled)
    return accounts


@given(st.permutations(range(100)), st.integers(0, 99))
def test_what_fired_once_is_proven_in_whatever_order(order: list[int], cancelled: int) -> None:
    fired = [KEYS[number] for number in order if number >= cancelled] + KEYS[100:]
    tally = closed(fired, cancelled=cancelled).closed[MINUTE]
    assert tally.proven
    assert (tally.submitted, tally.cancelled, tally.fired) == (2_000, cancelled, len(fired))


@pytest.mark.parametrize(
    ("fired", "wrong"),
    [
        (KEYS[1:], {"lost": 1}),
        ([*KEYS, KEYS[5]], {"duplicated": 1}),
        ([*KEYS[1:], KEYS[5]], {"mismatched": 1}),
    ],
)
def test_what_is_wrong_is_told(fired: list[bytes], wrong: dict[str, int]) -> None:
    tally = closed(fired).closed[MINUTE]
    assert not tally.proven
    assert {name: getattr(tally, name) for name in wrong} == wrong


def test_what_was_early_is_told() -> None:
    assert closed(KEYS, early=1).closed[MINUTE].early == 1


def test_what_was_never_read_is_lost() -> None:
    accounts = Accounts()
    accounts.submitted(MINUTE, KEYS[:10])
    accounts.fired(MINUTE, KEYS[:10], hashes_of(KEYS[:10]), 0, 0)
    accounts.close(MINUTE, 12, 10, 10, 0)
    assert accounts.closed[MINUTE].lost == 2


def test_what_fires_after_the_close_is_a_duplicate() -> None:
    accounts = closed(KEYS)
    accounts.fired(MINUTE, KEYS[:3], hashes_of(KEYS[:3]), 0, 0)
    assert accounts.closed[MINUTE].duplicated == 3


def test_what_the_shard_counted_otherwise_is_a_mismatch() -> None:
    accounts = Accounts()
    accounts.submitted(MINUTE, KEYS)
    accounts.fired(MINUTE, KEYS, hashes_of(KEYS), 0, 0)
    accounts.close(MINUTE, len(KEYS), len(KEYS), len(KEYS) - 1, 1)
    assert accounts.closed[MINUTE].mismatched == 1


def test_open_minutes_know_what_waits() -> None:
    accounts = Accounts()
    accounts.submitted(3, KEYS[:5])
    accounts.filed(9, KEYS[5])
    assert (accounts.waiting(), accounts.waiting(below=9), accounts.waiting(above=9)) == (6, 5, 1)


@given(st.lists(st.sampled_from(KEYS)), st.lists(st.sampled_from(KEYS)))
def test_a_digest_is_empty_only_if_as_many_of_each_went_out_as_came_in(came: list[bytes], went: list[bytes]) -> None:
    digest = Digest()
    digest.add(hashes_of(came))
    digest.add(hashes_of(went), -1)
    assert bool(digest) == (sorted(came) != sorted(went))
