"""Do the clocks of this machine and of a service agree?

Pure. A service's time was read between two looks at ours, so it can be wrong by half of what lies between them: only
what exceeds that and the tolerance is a finding.
"""

from msgspec import Struct

from .finding import Finding

TOLERANCE_MS = 500
"""Tasks fire by the owner's clock, and relative delays count from the broker's: their difference is lateness."""


class Reading(Struct, frozen=True):
    """What a service's clock said, and ours before and after."""

    before_ms: int
    theirs_ms: int
    after_ms: int

    def skew_ms(self) -> int:
        """How far theirs is ahead of ours at least; 0 if they may agree."""
        if self.theirs_ms > self.after_ms:
            return self.theirs_ms - self.after_ms
        return min(0, self.theirs_ms - self.before_ms)


def clock_findings(service: str, reading: Reading) -> list[Finding]:
    skew_ms = reading.skew_ms()
    if abs(skew_ms) <= TOLERANCE_MS:
        return []
    what = f"the clock of {service} is {abs(skew_ms)} ms {'ahead of' if skew_ms > 0 else 'behind'} this machine's"
    return [Finding(service, "clock", what, "let a time service (chrony, ntpd) keep both machines' clocks")]
