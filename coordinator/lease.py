"""May I act for my shards now, and what ends that?

This is the whole of the arithmetic by which a dispatcher believes in its leases. It is pure: `now_ms` is always an
argument, on a monotonic clock that also counts while the machine sleeps (CLOCK_BOOTTIME where there is one).

The question
    The coordinator gives a session to each dispatcher, and leases of shards to the session. When it has heard
    nothing for a session timeout it ends the session and gives the shards to others. The dispatcher cannot see that
    moment: it may be frozen, or cut off, just then. So it must stop by itself, before, by its own clock.

How long is a lease trusted?
    The coordinator counts from when a renewal *arrived*. The dispatcher knows when it *sent* it, which is earlier,
    and when the answer came, which is later by an unknown time. So trust counts from the sending, of the last
    renewal that was acknowledged:

        sent ──── arrived ──── acknowledged
          │          ├────────── session timeout ──────────┤ the shards go to others
          ├──── 0.6 × session timeout ────┤ trust ends
          ├─ one third ─┤ the next renewal is sent

    A slow answer shortens trust and never stretches it. The 0.4 left over pays for what was handed to the producer
    in the last moment and is still under way, and for two clocks that do not run equally fast. Renewing at a third
    leaves time for one renewal to fail. The timeout is the one that was granted, not the one asked for.

What else ends it?
    *A break*: the connection came into doubt. The session may live on (another server takes it over), so nothing is
    forgotten, but nothing is handed out either. Only a look at the owners, begun after the break, tells which
    shards are still this session's. The port counts the breaks, so one that came and went between two questions is
    not missed, and an answer from before a second break counts for nothing.
    *A lapse*: trust ran out, because renewals were not acknowledged or because this process stood still. A process
    that wakes after a minute finds its clock past the end of trust before it does anything else. The way back is
    the same as after a break: a renewal, and a look at the owners.
    *The end*: the coordinator says that the session is over. That is final; a new one begins under a new id.

    The transitions are the table below, and nothing else changes the state; docs/leases.md is drawn from it.

When to ask
    Before each release from the gate, each batch for the producer and each write: not once when work is queued,
    but at the moment of acting. An answer is worth nothing a moment later, and costs two comparisons.

        breaks, sent_ms = membership.breaks, monotonic_ms()    # before: a break from here on is one too many
        session = session.seen(sent_ms, breaks)
        await membership.renew()
        session = session.renewed(sent_ms, monotonic_ms(), timeout_ms=membership.session_timeout_ms)
        if session.state is State.SUSPENDED:
            owners = await membership.owners()                 # drop the shards that are not mine in it
            session = session.confirmed(breaks, monotonic_ms())

What trust is not
    It cannot be perfect: a thread can stop between the question and the act. What slips through is harmless, by the
    fence: progress is refused, rows are outranked, and what was published twice has its effect once. Trust keeps
    that rare; the fence keeps it harmless.
"""

from enum import StrEnum

from msgspec import Struct

TRUST_PERCENT = 60
RENEWALS_A_TIMEOUT = 3
assert 100 // RENEWALS_A_TIMEOUT < TRUST_PERCENT, "trust must outlast the time to the next renewal"


class Trust(Struct, frozen=True, gc=False):
    """Trusted until `sent_ms` (of the last acknowledged renewal, or of the join) + 0.6 × `timeout_ms`."""

    sent_ms: int
    timeout_ms: int

    @property
    def until_ms(self) -> int:
        return self.sent_ms + self.timeout_ms * TRUST_PERCENT // 100

    def trusted(self, now_ms: int) -> bool:
        return now_ms < self.until_ms

    def remaining_ms(self, now_ms: int) -> int:
        return max(0, self.until_ms - now_ms)

    @property
    def renew_at_ms(self) -> int:
        """When the next renewal should be sent, if this one stays the last."""
        return self.sent_ms + self.timeout_ms // RENEWALS_A_TIMEOUT

    def renewed(self, sent_ms: int, *, timeout_ms: int | None = None) -> "Trust":
        """A renewal sent then is acknowledged. One that is overtaken by a later one changes nothing."""
        if sent_ms < self.sent_ms:
            return self
        return Trust(sent_ms, self.timeout_ms if timeout_ms is None else timeout_ms)


class State(StrEnum):
    """How a session stands. Only in TRUSTED may anything be handed to the producer or written."""

    TRUSTED = "trusted"
    SUSPENDED = "suspended"
    OVER = "over"


class Cause(StrEnum):
    """What changes it."""

    BREAK = "the connection came into doubt"
    LAPSE = "trust ran out"
    CONFIRMATION = "renewed, and the owners read since"
    END = "the coordinator ended the session, or it was left"


TRANSITIONS: dict[tuple[State, Cause], State] = {
    (State.TRUSTED, Cause.BREAK): State.SUSPENDED,
    (State.TRUSTED, Cause.LAPSE): State.SUSPENDED,
    (State.TRUSTED, Cause.END): State.OVER,
    (State.SUSPENDED, Cause.CONFIRMATION): State.TRUSTED,
    (State.SUSPENDED, Cause.END): State.OVER,
}
"""What is not listed changes nothing: a confirmation of what is trusted, a break of what is suspended, the dead."""


class Session(Struct, frozen=True, gc=False):
    """What a dispatcher believes of its own session. `breaks` are those that a confirmation has covered."""

    trust: Trust
    breaks: int = 0
    state: State = State.TRUSTED

    def seen(self, now_ms: int, breaks: int) -> "Session":
        """At this moment, with so many breaks counted: suspended if either condition says so."""
        if breaks != self.breaks:
            return self._after(Cause.BREAK)
        return self if self.trust.trusted(now_ms) else self._after(Cause.LAPSE)

    def may_act(self, now_ms: int, breaks: int) -> bool:
        """Ask right before acting; `breaks` is the membership's count at present."""
        return self.state is State.TRUSTED and breaks == self.breaks and self.trust.trusted(now_ms)

    def renewed(self, sent_ms: int, now_ms: int, *, timeout_ms: int | None = None) -> "Session":
        """A renewal sent then is acknowledged now. It moves the end of trust; it does not lift a suspension.

        If trust had run out before the answer came, that was a lapse, whether or not anyone looked meanwhile.
        """
        lapsed = self if self.trust.trusted(now_ms) else self._after(Cause.LAPSE)
        return Session(self.trust.renewed(sent_ms, timeout_ms=timeout_ms), self.breaks, lapsed.state)

    def confirmed(self, breaks: int, now_ms: int) -> "Session":
        """The owners were read, asked for when `breaks` breaks were counted; the shards not mine are dropped.

        Without trust it changes nothing: the renewal comes first.
        """
        if not self.trust.trusted(now_ms):
            return self
        after = self._after(Cause.CONFIRMATION)
        return Session(after.trust, breaks, after.state)

    def ended(self) -> "Session":
        return self._after(Cause.END)

    def _after(self, cause: Cause) -> "Session":
        return Session(self.trust, self.breaks, TRANSITIONS.get((self.state, cause), self.state))
