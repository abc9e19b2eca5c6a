"""Of which errors may it be said that nothing was done?"""

import pytest
from cassandra import (
    AuthenticationFailed,
    CDCWriteFailure,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteFailure,
    WriteTimeout,
    WriteType,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException, ConnectionShutdown
from cassandra.protocol import (
    ErrorMessage,
    IsBootstrappingErrorMessage,
    OverloadedErrorMessage,
    ServerError,
    SyntaxException,
    TruncateError,
)
from minutewheel.store.cassandra_errors import classified, worst
from minutewheel.store.errors import NotApplied, StoreError, UnknownOutcome

CERTAIN = [
    NoHostAvailable("no connection took it", {"127.0.0.1": ConnectionException("marked down")}),
    Unavailable("too few replicas live"),
    InvalidRequest("no such table"),
    Unauthorized("no permission"),
    AuthenticationFailed("bad credentials"),
    SyntaxException(0x2000, "no viable alternative", None),
    IsBootstrappingErrorMessage(0x1002, "bootstrapping", None),
]
UNKNOWN = [
    OperationTimedOut({}, None),
    *(WriteTimeout("timed out", write_type=kind) for kind in WriteType.name_to_value.values()),
    WriteFailure("a replica failed", write_type=WriteType.CAS),
    CDCWriteFailure("full"),
    ReadTimeout("the read of a conditional write"),
    ReadFailure("the read of a conditional write"),
    ErrorMessage(0x1700, "CAS operation result is unknown", None),
    OverloadedErrorMessage(0x1001, "too many hints, after some replicas were asked", None),
    TruncateError(0x1003, "failed", None),
    ServerError(0x0000, "java.lang.RuntimeException", None),
    ConnectionShutdown("the connection was lost"),
    ConnectionException("reset by peer"),
    RuntimeError("whatever else"),
]


@pytest.mark.parametrize("error", CERTAIN, ids=lambda error: type(error).__name__)
def test_what_was_refused_before_any_replica_was_asked_is_not_applied(error: Exception) -> None:
    assert type(classified(error, reads=False)) is NotApplied


@pytest.mark.parametrize("error", UNKNOWN, ids=lambda error: type(error).__name__)
def test_all_else_is_unknown(error: Exception) -> None:
    assert type(classified(error, reads=False)) is UnknownOutcome


@pytest.mark.parametrize("error", CERTAIN + UNKNOWN, ids=lambda error: type(error).__name__)
def test_a_read_changes_nothing(error: Exception) -> None:
    assert type(classified(error, reads=True)) is NotApplied


def test_the_message_names_the_drivers_error_and_is_bounded() -> None:
    assert str(classified(Unavailable("few"), reads=False)).startswith("Unavailable: ")
    assert len(str(classified(RuntimeError("x" * 9_999), reads=False))) <= 300


@pytest.mark.parametrize(
    ("failures", "any_done", "kind"),
    [
        ([NotApplied("a")], False, NotApplied),
        ([NotApplied("a")], True, UnknownOutcome),
        ([NotApplied("a"), UnknownOutcome("b")], False, UnknownOutcome),
    ],
)
def test_a_whole_is_not_applied_only_if_no_part_was(
    failures: list[StoreError], any_done: bool, kind: type[StoreError]
) -> None:
    assert type(worst(failures, any_done=any_done)) is kind
