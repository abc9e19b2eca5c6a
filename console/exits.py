"""With which number does a command end, and what of its errors does the user see?

The numbers are stable: scripts may count on them. An error is one line; the traceback is for `--debug`.
"""

from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from traceback import extract_tb


class ExitCode(IntEnum):
    """How a command ended. See docs/cli.md."""

    OK = 0
    """It was done."""
    FAILED = 1
    """It was not done, or what was checked does not hold."""
    USAGE = 2
    """The command line or the settings make no sense."""
    REFUSED = 3
    """Some of the input was refused; the rest was taken."""
    NOT_FOUND = 4
    """There is no such task, queue or data folder, or the fleet is not set up."""
    IN_USE = 5
    """Another dispatcher has the data folder."""
    NO_ANSWER = 6
    """The command was accepted, but nobody answered in time: is a dispatcher running?"""


class Failure(Exception):
    """A command ends here: with this line, and this number."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


def failure_of(error: Exception) -> Failure | None:
    """What to say of an error that can happen without a fault in the program; None for any other."""
    from ..broker.command import InvalidTask
    from ..broker.errors import BrokerError
    from ..coordinator import CoordinatorError, DataFolderInUse
    from ..settings import SettingsError
    from ..store.errors import NoSchema, StoreError
    from ..wiring import NoDataFolder, NotSetUp
    from ..worker import ClientError, NoAnswer

    match error:
        case Failure():
            return error
        case ExceptionGroup(exceptions=[only]):
            return failure_of(only)
        case SettingsError():
            return Failure(str(error), ExitCode.USAGE)
        case InvalidTask():
            return Failure(f"{error.code}: {error.message}", ExitCode.REFUSED)
        case NoDataFolder() | NotSetUp() | NoSchema():
            return Failure(str(error), ExitCode.NOT_FOUND)
        case DataFolderInUse():
            return Failure(str(error), ExitCode.IN_USE)
        case NoAnswer():
            return Failure(f"{error} (is a dispatcher running?)", ExitCode.NO_ANSWER)
        case StoreError() | BrokerError() | CoordinatorError() | ClientError() | OSError():
            return Failure(str(error))
    return None


def unexpected(error: Exception) -> Failure:
    """What to say of a fault in the program: each error, and where it was raised; a log has this line alone."""
    told = "; ".join(_told(one) for one in _leaves(error))
    return Failure(f"unexpected {told} (--debug shows the traceback)")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _told(error: BaseException) -> str:
    calls = extract_tb(error.__traceback__)
    place = f" at {Path(calls[-1].filename).name}:{calls[-1].lineno}" if calls else ""
    return f"{type(error).__name__}: {error}{place}"
