from pathlib import Path

import pytest
from minutewheel import InvalidTask, NoAnswer, NotAccepted
from minutewheel.broker.command import Code
from minutewheel.broker.errors import BrokerError
from minutewheel.console.exits import ExitCode, Failure, failure_of
from minutewheel.coordinator import DataFolderInUse
from minutewheel.settings import SettingsError
from minutewheel.store.errors import NoSchema, StoreError
from minutewheel.wiring import NoDataFolder, NotSetUp

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SettingsError("x"), 2),
        (InvalidTask(Code.BAD_ID, "x"), 3),
        (NoDataFolder(Path("x")), 4),
        (NotSetUp(), 4),
        (NoSchema("keyspace x"), 4),
        (DataFolderInUse("x", 1), 5),
        (NoAnswer("x"), 6),
        (NotAccepted("x"), 1),
        (StoreError("x"), 1),
        (BrokerError("x"), 1),
        (PermissionError("x"), 1),
        (Failure("x", ExitCode.NOT_FOUND), 4),
        (ExceptionGroup("several", [ExceptionGroup("one", [DataFolderInUse("x", 1)])]), 5),
    ],
)
def test_the_number_of_each_error(error: Exception, code: int) -> None:
    failure = failure_of(error)
    assert failure is not None
    assert failure.code == code


def test_a_fault_of_the_program_is_none_of_them() -> None:
    assert failure_of(TypeError("x")) is None
    assert failure_of(ExceptionGroup("two", [StoreError("x"), BrokerError("y")])) is None


def test_the_numbers_are_stable() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "REFUSED": 3,
        "NOT_FOUND": 4,
        "IN_USE": 5,
        "NO_ANSWER": 6,
    }
