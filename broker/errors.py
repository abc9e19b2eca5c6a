"""What can go wrong at the broker, told apart by what the caller must do."""


class BrokerError(Exception):
    """The broker did not do what it was asked; it may be asked again."""


class Unpublishable(BrokerError):
    """This message can never be published as it is. `reason` is too_large, no_such_topic or not_allowed."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class OffsetGone(BrokerError):
    """The log no longer has the offset that was asked for: an alarm, never a silent reset."""


class NotAssigned(BrokerError):
    """The partition is not this member's any more."""
