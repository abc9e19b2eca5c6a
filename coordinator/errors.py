"""What can go wrong at the coordinator, told apart by what the caller must do."""


class CoordinatorError(Exception):
    """The coordinator did not do what it was asked."""


class CoordinatorUnavailable(CoordinatorError):
    """Done or not, nobody knows: it may be asked again. Trust runs on from the last acknowledged renewal, no longer."""


class LeaseLost(CoordinatorError):
    """This membership is over, with all it held: drop the shards, and join again under a new member id."""


class MemberKnown(CoordinatorError):
    """The member id has been used before: ids are for one join only, so that no old lease can pass for a new one."""


class FencesExhausted(CoordinatorError):
    """The next fence would not fit the upper half of a write timestamp: an alarm for people, nothing to try again."""


class DataFolderDamaged(CoordinatorError):
    """A file in the data folder does not hold what was written there: the message names it and says what to do."""


class DataFolderInUse(CoordinatorError):
    """Another dispatcher has this data folder; `pid` is its process (0 if it could not be told)."""

    def __init__(self, folder: str, pid: int) -> None:
        super().__init__(
            f"the data folder {folder} is in use by the dispatcher with process id {pid or 'unknown'}: "
            "stop that one, or choose another folder (all other commands run beside it)"
        )
        self.folder = folder
        self.pid = pid
