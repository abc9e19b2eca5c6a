import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.coordinator import LeaseLost, LocalCoordinator, Membership, Session, State, Trust
from minutewheel.coordinator.lease import TRANSITIONS, Cause
from minutewheel.store.position import write_timestamp

pytestmark = pytest.mark.pure

TIMES = st.integers(0, 1 << 40)
TIMEOUTS = st.integers(1_000, 60_000)


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


@given(sent=TIMES, timeout=TIMEOUTS, after=st.integers(0, 120_000))
def test_trusted_is_what_remains(sent: int, timeout: int, after: int) -> None:
    trust = Trust(sent, timeout)
    assert trust.trusted(sent + after) == (after * 100 < timeout * 60 // 100 * 100)
    assert trust.trusted(sent + after) == (trust.remaining_ms(sent + after) > 0)


@given(sent=TIMES, timeout=TIMEOUTS)
def test_the_next_renewal_is_due_while_trusted_and_may_fail_once(sent: int, timeout: int) -> None:
    trust = Trust(sent, timeout)
    assert sent < trust.renew_at_ms < trust.until_ms < sent + timeout
    assert trust.trusted(trust.renew_at_ms + timeout // 4)


@given(timeout=TIMEOUTS, sent=st.lists(TIMES, min_size=1, max_size=8), data=st.data())
def test_acknowledgements_in_any_order_leave_the_latest_sending(
    timeout: int, sent: list[int], data: st.DataObject
) -> None:
    trust = Trust(0, timeout)
    for sent_ms in data.draw(st.permutations(sent)):
        trust = trust.renewed(sent_ms)
    assert trust == Trust(max(sent), timeout)


def test_a_timeout_granted_anew_counts_from_then_on() -> None:
    assert Trust(0, 10_000).renewed(2_000, timeout_ms=4_000).until_ms == 2_000 + 2_400


# Case 38: a paused or cut-off holder that believes for too long.


def test_case_38_trust_ends_by_the_sending_not_by_the_notice() -> None:
    asked_for_ms, granted_ms = 12_000, 9_000
    session = Session(Trust(sent_ms=0, timeout_ms=granted_ms))
    session = session.renewed(sent_ms=0, now_ms=700)  # the acknowledgement was slow; the link is cut after it
    acted = [now_ms for now_ms in range(0, 20_000, 10) if session.may_act(now_ms, breaks=int(now_ms >= 6_000))]
    assert max(acted) == 5_390
    assert granted_ms * 6 // 10 == 5_400 < asked_for_ms * 6 // 10


def test_case_38_suspended_stops_at_once_with_trust_left() -> None:
    session = Session(Trust(sent_ms=0, timeout_ms=9_000))
    assert session.may_act(1_999, breaks=0)
    assert not session.may_act(2_000, breaks=1)


def test_case_38_a_process_stopped_for_30_seconds_wakes_without_trust() -> None:
    session = Session(Trust(sent_ms=0, timeout_ms=9_000))
    woken_ms = 30_500
    assert not session.may_act(woken_ms, breaks=0)
    # The acknowledgement of a renewal sent just before the stop lay in the socket all the while.
    session = session.renewed(sent_ms=490, now_ms=woken_ms)
    assert session.state is State.SUSPENDED
    assert not session.may_act(woken_ms, breaks=0)


async def test_case_36_ownership_is_asked_when_acting_not_when_queueing() -> None:
    clock = Clock()
    coordinator = LocalCoordinator.in_memory(clock, session_timeout_ms=9_000)
    stale = await coordinator.join("a")
    stale_fence = await stale.acquire(3)
    session = Session(Trust(clock.now_ms, stale.session_timeout_ms))
    queued = list(range(100)) if session.may_act(clock.now_ms, stale.breaks) else []
    published = []
    for task in queued:
        clock.now_ms += 90
        if session.may_act(clock.now_ms, stale.breaks):
            published.append(task)
    assert published == queued[:59]  # 59 × 90 ms = 5,310 ms; the sixtieth would be at the end of trust

    successor = await coordinator.join("b")
    fence = await successor.acquire(3)
    assert stale_fence is not None
    assert fence is not None
    assert write_timestamp(stale_fence, (1 << 31) - 1) < write_timestamp(fence, 0)
    with pytest.raises(LeaseLost):
        await stale.renew()


# The state machine.


def trusted() -> Session:
    return Session(Trust(sent_ms=0, timeout_ms=10_000))


def test_a_suspension_is_lifted_by_a_look_at_the_owners_after_the_break() -> None:
    suspended = trusted().seen(100, breaks=1)
    assert suspended.state is State.SUSPENDED
    assert not suspended.renewed(150, 160).may_act(170, breaks=1)
    assert suspended.renewed(150, 160).confirmed(1, 170).may_act(180, breaks=1)


def test_an_answer_from_before_the_last_break_lifts_nothing() -> None:
    asked_after_first = trusted().seen(100, breaks=1).renewed(150, 160)
    assert not asked_after_first.confirmed(1, 300).may_act(310, breaks=2)


def test_a_break_that_came_and_went_unseen_still_stops() -> None:
    assert not trusted().renewed(100, 110).may_act(120, breaks=1)


def test_trust_that_ran_out_needs_a_renewal_and_then_the_owners() -> None:
    lapsed = trusted().seen(6_000, breaks=0)
    assert lapsed.state is State.SUSPENDED
    assert lapsed.confirmed(0, 6_010).state is State.SUSPENDED
    renewed = lapsed.renewed(6_020, 6_030)
    assert not renewed.may_act(6_040, breaks=0)
    assert renewed.confirmed(0, 6_050).may_act(6_060, breaks=0)


def test_the_end_is_final() -> None:
    over = trusted().ended()
    assert over.renewed(10, 20).confirmed(0, 30).seen(40, 1).state is State.OVER
    assert not over.may_act(0, breaks=0)


@given(st.data())
def test_whatever_happens_acting_needs_trust_and_every_break_confirmed(data: st.DataObject) -> None:
    """Against a model that remembers what happened, not what state it led to."""
    session, now_ms, breaks, sent_ms = trusted(), 0, 0, 0
    breaks_confirmed, lapsed, ended = 0, False, False
    for _ in range(data.draw(st.integers(1, 25))):
        now_ms += data.draw(st.sampled_from((1, 900, 2_500, 6_000)))
        lapsed |= now_ms >= sent_ms + 6_000
        match data.draw(st.sampled_from(("break", "look", "renew", "confirm", "end"))):
            case "break":
                breaks += 1
            case "look":
                session = session.seen(now_ms, breaks)
            case "renew":
                session, sent_ms = session.seen(now_ms, breaks).renewed(now_ms, now_ms), now_ms
            case "confirm":
                session = session.seen(now_ms, breaks).confirmed(breaks, now_ms)
                if now_ms < sent_ms + 6_000:
                    breaks_confirmed, lapsed = breaks, False
            case _:
                session, ended = session.ended(), True
        may = not ended and not lapsed and breaks == breaks_confirmed
        assert session.may_act(now_ms, breaks) == may


# One trusted lease a shard, whatever the network does to renewals.


class Dispatcher:
    """Renews over a network that delays and cuts; `stamps` says from which moment it counts a renewal."""

    def __init__(self, name: str, membership: Membership, clock: Clock, stamps: str) -> None:
        self.name, self.membership, self.clock, self.stamps = name, membership, clock, stamps
        self.session = Session(Trust(clock.now_ms, membership.session_timeout_ms))
        self.owns = False
        self.cut_until_ms = 0
        self.on_the_way: list[tuple[int, str, int]] = []

    def send(self, rng: random.Random) -> None:
        if self.clock.now_ms >= self.cut_until_ms:
            self.on_the_way.append((self.clock.now_ms + rng.choice((1, 20, 3_000)), "request", self.clock.now_ms))

    async def receive(self, rng: random.Random) -> None:
        now_ms = self.clock.now_ms
        due = sorted(item for item in self.on_the_way if item[0] <= now_ms)
        self.on_the_way = [item for item in self.on_the_way if item[0] > now_ms]
        for _, what, sent_ms in due:
            if what == "request":
                await self.membership.renew()
                self.on_the_way.append((now_ms + rng.choice((1, 20, 3_000, 5_000)), "answer", sent_ms))
            else:
                counted_ms = sent_ms if self.stamps == "sending" else now_ms
                self.session = self.session.renewed(counted_ms, now_ms)
        if self.session.state is State.SUSPENDED and now_ms >= self.cut_until_ms:
            self.owns = (await self.membership.owners()).get(0) == self.name
            self.session = self.session.confirmed(0, now_ms)

    async def live(self, rng: random.Random) -> None:
        try:
            await self.receive(rng)
            if rng.random() < 0.7:
                self.send(rng)
            if rng.random() < 0.05:
                self.cut_until_ms = self.clock.now_ms + 30_000
            if not self.owns and rng.random() < 0.5:
                self.owns = await self.membership.acquire(0) is not None
        except LeaseLost:
            pass  # it hears that in an answer; here the answer is the one that is lost

    def may_act(self) -> bool:
        return self.owns and self.session.may_act(self.clock.now_ms, self.membership.breaks)


async def believers(seed: int, stamps: str) -> list[int]:
    """How many dispatchers believe that they may act for one shard, at each moment of a history."""
    rng, clock = random.Random(seed), Clock()
    coordinator = LocalCoordinator.in_memory(clock, session_timeout_ms=10_000)
    fleet: list[Dispatcher] = []
    counts = []
    for turn in range(200):
        clock.now_ms += rng.choice((1, 100, 500, 1_000, 2_000))
        if turn < 2 or rng.random() < 0.05:
            fleet.append(Dispatcher(f"m{turn}", await coordinator.join(f"m{turn}"), clock, stamps))
        for dispatcher in fleet:
            await dispatcher.live(rng)
        counts.append(sum(d.may_act() for d in fleet))
    return counts


async def test_no_two_dispatchers_trust_in_one_shard_whatever_is_delayed() -> None:
    counts = [count for seed in range(60) for count in await believers(seed, "sending")]
    assert max(counts) == 1
    assert sum(counts) > len(counts) / 4, "most of the time someone should act"


async def test_counting_from_the_answer_would_let_two_act() -> None:
    assert max([count for seed in range(60) for count in await believers(seed, "answer")]) > 1


# The documentation shows the table.


def drawn() -> str:
    arrows = [f"    {old} --> {new}: {cause}" for (old, cause), new in TRANSITIONS.items()]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {State.TRUSTED}: joined", *arrows, f"    {State.OVER} --> [*]"])


def test_the_diagram_in_the_docs_is_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "leases.md"
    assert f"```mermaid\n{drawn()}\n```" in page.read_text("utf-8"), drawn()


def test_every_cause_and_every_state_has_its_transition() -> None:
    assert {cause for _, cause in TRANSITIONS} == set(Cause)
    assert {state for (old, _), new in TRANSITIONS.items() for state in (old, new)} == set(State)
