"""How much does a worker take on, and how long does it hold, wait and give?"""

from msgspec import Struct


class WorkerLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of one worker process.

    `concurrency` bounds what is taken from the broker and not finished, `threads` how many plain handlers run at a
    time. `parked` are deliveries that wait for another holder, `uncommitted` offsets that wait for one before them:
    past either, nothing more is taken. On SIGTERM running handlers get `grace_ms`, then what is finished gets
    `flush_ms` to be reported.
    """

    concurrency: int = 1_000
    threads: int = 32
    parked: int = 10_000
    uncommitted: int = 100_000
    hold_ms: int = 30_000
    renew_ms: int = 10_000
    poll_ms: int = 1_000
    commit_ms: int = 200
    grace_ms: int = 20_000
    flush_ms: int = 5_000

    def __post_init__(self) -> None:
        """Check what the limits must be to each other."""
        if min(self.concurrency, self.threads, self.renew_ms, self.poll_ms, self.commit_ms) < 1:
            raise ValueError("concurrency, threads, renew_ms, poll_ms and commit_ms are at least 1")
        if self.renew_ms * 2 > self.hold_ms:
            raise ValueError("a hold must outlast one renewal that fails: renew_ms is at most half of hold_ms")
