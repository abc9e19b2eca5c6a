from functools import reduce
from operator import xor
from struct import error

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.store.progress import Marks, mix, pack_filings, unpack_filings

pytestmark = pytest.mark.pure

filings = st.integers(0, (1 << 63) - 1)


@given(st.lists(filings))
def test_packed_filings_come_back_in_their_order(numbers: list[int]) -> None:
    packed = pack_filings(numbers)
    assert len(packed) == 8 * len(numbers)
    assert list(unpack_filings(packed)) == numbers


def test_packed_filings_are_little_endian_on_every_machine() -> None:
    assert pack_filings((1, 1 << 62)) == b"\1\0\0\0\0\0\0\0" + b"\0\0\0\0\0\0\0\x40"


def test_what_is_no_filing_is_not_packed() -> None:
    with pytest.raises(error):
        pack_filings((1 << 63,))


@given(st.sets(filings), st.sets(filings), filings)
def test_a_journal_holds_what_is_fired_or_removed(fired: set[int], removed: set[int], other: int) -> None:
    marks = Marks(set(fired), set(removed))
    assert all(filing in marks for filing in fired | removed)
    assert (other in marks) == (other in fired or other in removed)
    assert len(marks) == len(fired) + len(removed)


def test_journals_do_not_share_their_sets() -> None:
    one, other = Marks(), Marks()
    one.fired.add(1)
    assert not other


def test_mix_is_the_finalizer_of_splitmix64() -> None:
    """The generator's first numbers from seed 0: its state grows by the golden gamma before each."""
    gamma = 0x9E3779B97F4A7C15
    assert mix(gamma) == 0xE220A8397B1DCDAF
    assert mix(2 * gamma & (1 << 64) - 1) == 0x6E789E6AA1B965F4


@given(st.sets(filings, min_size=1), st.data())
def test_a_digest_tells_a_set_from_one_that_lacks_a_filing(numbers: set[int], data: st.DataObject) -> None:
    digest = reduce(xor, map(mix, numbers))
    lost = data.draw(st.sampled_from(sorted(numbers)))
    rest = reduce(xor, map(mix, numbers - {lost}), 0)
    assert 0 <= digest < 1 << 64
    assert (digest != rest) == (mix(lost) != 0) == (lost != 0)
