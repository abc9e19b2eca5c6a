from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minutewheel.coordinator import (
    CoordinatorError,
    DataFolderInUse,
    LeaseLost,
    LocalCoordinator,
    MemberKnown,
    Membership,
)

TIMEOUT_MS = 9_000


async def test_on_disk_a_second_dispatcher_is_refused_and_asking_is_not(tmp_path: Path) -> None:
    membership = await LocalCoordinator.on_disk(tmp_path).join("one")
    await membership.acquire(3)
    beside = LocalCoordinator.on_disk(tmp_path)
    with pytest.raises(DataFolderInUse):
        await beside.join("two")
    assert await beside.members() == {"one"}
    assert await beside.owners() == {3: "one"}


async def test_on_disk_asking_creates_nothing(tmp_path: Path) -> None:
    assert await LocalCoordinator.on_disk(tmp_path / "data").owners() == {}
    assert not (tmp_path / "data").exists()


@pytest.mark.pure
async def test_in_memory_a_session_ends_a_timeout_after_the_last_renewal_and_not_before() -> None:
    now_ms = 0
    coordinator = LocalCoordinator.in_memory(lambda: now_ms, session_timeout_ms=TIMEOUT_MS)
    membership = await coordinator.join("one")
    now_ms = 5_000
    await membership.renew()
    now_ms = 5_000 + TIMEOUT_MS - 1
    assert await coordinator.members() == {"one"}
    now_ms = 5_000 + TIMEOUT_MS
    assert await coordinator.members() == frozenset()
    with pytest.raises(LeaseLost):
        await membership.renew()


@pytest.mark.pure
async def test_in_memory_only_renewals_prolong() -> None:
    now_ms = 0
    coordinator = LocalCoordinator.in_memory(lambda: now_ms, session_timeout_ms=TIMEOUT_MS)
    membership = await coordinator.join("one")
    now_ms = TIMEOUT_MS - 1
    await membership.acquire(3)
    await membership.owners()
    now_ms = TIMEOUT_MS
    assert await coordinator.owners() == {}


@pytest.mark.pure
async def test_in_memory_an_id_is_for_one_join_only() -> None:
    now_ms = 0
    coordinator = LocalCoordinator.in_memory(lambda: now_ms, session_timeout_ms=TIMEOUT_MS)
    await coordinator.join("one")
    now_ms = TIMEOUT_MS
    with pytest.raises(MemberKnown):
        await coordinator.join("one")


@pytest.mark.pure
@settings(max_examples=80, deadline=None)
@given(st.data())
async def test_in_memory_against_a_model(data: st.DataObject) -> None:
    """The model keeps who holds what and until when; each answer must be the model's."""
    now_ms = 0
    coordinator = LocalCoordinator.in_memory(lambda: now_ms, session_timeout_ms=TIMEOUT_MS)
    memberships: dict[str, Membership] = {}
    until_ms: dict[str, int] = {}
    owners: dict[int, str] = {}
    highest = dict.fromkeys(range(3), 0)
    for turn in range(data.draw(st.integers(1, 30))):
        now_ms += data.draw(st.sampled_from((0, 10, 4_000, 8_999)))
        owners = {s: m for s, m in owners.items() if now_ms < until_ms[m]}
        verb = data.draw(st.sampled_from(("join", "renew", "acquire", "acquire", "release", "leave")))
        if verb == "join" or not memberships:
            memberships[f"m{turn}"] = await coordinator.join(f"m{turn}")
            until_ms[f"m{turn}"] = now_ms + TIMEOUT_MS
            continue
        member = data.draw(st.sampled_from(sorted(memberships)))
        membership, shard = memberships[member], data.draw(st.integers(0, 2))
        try:
            match verb:
                case "renew":
                    await membership.renew()
                    until_ms[member] = now_ms + TIMEOUT_MS
                case "acquire":
                    above = data.draw(st.sampled_from((0, 0, 50)))
                    fence = await membership.acquire(shard, above)
                    assert (fence is None) == (owners.get(shard, member) != member)
                    if fence is not None:
                        assert fence > max(highest[shard], above)
                        highest[shard], owners[shard] = fence, member
                case "release":
                    await membership.release(shard)
                    owners = {s: m for s, m in owners.items() if (s, m) != (shard, member)}
                case _:
                    await membership.leave()
                    until_ms[member] = min(until_ms[member], now_ms)
        except CoordinatorError:
            assert now_ms >= until_ms[member]
        else:
            assert now_ms < until_ms[member] or verb == "leave"
        assert await coordinator.members() == {m for m, until in until_ms.items() if now_ms < until}
        assert await coordinator.owners() == {s: m for s, m in owners.items() if now_ms < until_ms[m]}
