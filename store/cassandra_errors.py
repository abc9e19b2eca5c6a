"""What does an error of Cassandra's driver say: certainly not done, or nobody knows?

There are few certain refusals: the request was never sent, or it was refused before any replica was asked. All else
is unknown: timeouts of either side, a lost connection, a failure of some replicas, and code 0x1700 (the outcome of a
conditional write is unknown), for which the driver has no class. A read changes nothing, so it is always "not done".
"""

from cassandra import AuthenticationFailed, RequestValidationException, Unavailable, UnsupportedOperation
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import IsBootstrappingErrorMessage
from cassandra.protocol import RequestValidationException as RequestValidationMessage

from .errors import NotApplied, StoreError, UnknownOutcome

TEXT_MAX = 300

REFUSED = (
    NoHostAvailable,  # no connection took the request; one that took it and broke is a ConnectionException
    Unavailable,
    IsBootstrappingErrorMessage,
    RequestValidationException,
    RequestValidationMessage,
    AuthenticationFailed,
    UnsupportedOperation,
)


def classified(error: BaseException, *, reads: bool) -> StoreError:
    """The port's error for the driver's; `reads` says that the request could not change anything."""
    kind = NotApplied if reads or isinstance(error, REFUSED) else UnknownOutcome
    return kind(f"{type(error).__name__}: {error}"[:TEXT_MAX])


def worst(failures: list[StoreError], *, any_done: bool) -> StoreError:
    """The error of a whole whose parts failed: not applied only if no part was."""
    unknown = next((error for error in failures if isinstance(error, UnknownOutcome)), None)
    if unknown is not None or not any_done:
        return unknown or failures[0]
    mixed = UnknownOutcome(f"done in part: {failures[0]}")
    mixed.__cause__ = failures[0]
    return mixed
