import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.coordinator import Sightings, new_member_id

pytestmark = pytest.mark.pure

SETTLE_MS = 3_000


@given(host=st.text(max_size=300), pid=st.integers(1, 1 << 22), noise=st.binary(min_size=8, max_size=8))
def test_an_id_can_stand_in_a_path_and_a_log_whatever_the_host_is_called(host: str, pid: int, noise: bytes) -> None:
    member = new_member_id(host, pid, noise)
    assert re.fullmatch(r"[A-Za-z0-9.-]{1,100}", member)
    assert member.endswith(f"-{pid}-{noise.hex()}")


def test_one_host_and_one_pid_make_two_ids() -> None:
    assert new_member_id("db.one", 7, bytes(8)) == "db.one-7-0000000000000000"
    assert new_member_id("db.one", 7, bytes(8)) != new_member_id("db.one", 7, bytes(7) + b"\1")


def test_who_was_there_first_counts_at_once_and_a_newcomer_when_it_has_settled() -> None:
    first = Sightings().look({"a", "b"}, 1_000, settle_ms=SETTLE_MS)
    assert first.counted(1_000) == {"a", "b"}
    second = first.look({"a", "b", "c"}, 2_000, settle_ms=SETTLE_MS)
    assert second.counted(4_999) == {"a", "b"}
    assert second.counted(5_000) == {"a", "b", "c"}


def test_who_is_gone_counts_no_more_and_starts_anew_when_it_returns() -> None:
    sightings = Sightings().look({"a", "b"}, 0, settle_ms=SETTLE_MS).look({"a"}, 100, settle_ms=SETTLE_MS)
    assert sightings.counted(100) == {"a"}
    returned = sightings.look({"a", "b"}, 200, settle_ms=SETTLE_MS)
    assert returned.counted(3_199) == {"a"}
    assert returned.counted(3_200) == {"a", "b"}


def test_a_member_that_comes_and_goes_is_never_counted() -> None:
    sightings = Sightings().look({"a"}, 0, settle_ms=SETTLE_MS)
    for now_ms in range(1_000, 60_000, 1_000):
        alive = {"a", "b"} if now_ms // 1_000 % 3 else {"a"}
        sightings = sightings.look(alive, now_ms, settle_ms=SETTLE_MS)
        assert sightings.counted(now_ms) == {"a"}


def test_where_nobody_has_settled_all_the_living_count() -> None:
    sightings = Sightings().look({"a"}, 0, settle_ms=SETTLE_MS).look({"b", "c"}, 10, settle_ms=SETTLE_MS)
    assert sightings.counted(10) == {"b", "c"}


@given(st.lists(st.sets(st.sampled_from("abcd")), min_size=1, max_size=20))
def test_counted_against_the_whole_history(looks: list[set[str]]) -> None:
    sightings = Sightings()
    for number, alive in enumerate(looks):
        now_ms = number * 1_000
        sightings = sightings.look(alive, now_ms, settle_ms=SETTLE_MS)
        settled = {m for m in alive if seen_without_a_gap(looks[: number + 1], m)}
        assert sightings.counted(now_ms) == (settled or alive)


def seen_without_a_gap(looks: list[set[str]], member: str) -> bool:
    """At the last four looks, which span three seconds; or at all of them."""
    return all(member in alive for alive in looks[-4:]) and (len(looks) >= 4 or member in looks[0])
