"""What can a handler raise to say how its attempt ended, and what do the clients raise (besides the decoder's
`InvalidTask`, for what would be refused anyway)?"""

DELAY_LIMIT_MS = 366 * 86_400_000
"""The longest delay that a handler may ask for: a year."""


class Retry(Exception):
    """This attempt failed; try again after so long. It counts like any failure: the last one is final."""

    def __init__(self, *, after_ms: int, reason: str = "asked to be tried again") -> None:
        super().__init__(reason)
        self.after_ms = _checked(after_ms)


class Snooze(Exception):
    """Not now: run it again after so long. It costs no attempt, so it may be said any number of times."""

    def __init__(self, *, after_ms: int, reason: str = "snoozed") -> None:
        super().__init__(reason)
        self.after_ms = _checked(after_ms)


class Reject(Exception):
    """This will never succeed: do not try again, put it to the dead letters with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class HoldLost(Exception):
    """This worker lost its hold on the filing, or is stopping: another will run it, so stop here."""


class TimeoutPassed(Exception):
    """The attempt took longer than its timeout: it is reported as failed, so stop here."""


class ClientError(Exception):
    """A client could not do what it was asked."""


class NotAccepted(ClientError):
    """The broker did not acknowledge it. It may stand in the log all the same: the same id makes asking again safe."""


class NoAnswer(ClientError):
    """The command was accepted, but its receipt did not come in time: what came of it is not known."""


def _checked(after_ms: int) -> int:
    if not 0 <= after_ms <= DELAY_LIMIT_MS:
        raise ValueError(f"a delay of {after_ms} ms is not between 0 and {DELAY_LIMIT_MS}")
    return after_ms
