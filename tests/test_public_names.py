import subprocess
import sys

import minutewheel
import pytest

pytestmark = pytest.mark.pure

HEAVY = "cassandra kazoo confluent_kafka litestar uvicorn matplotlib pydantic typer rich structlog sqlite3 uvloop"


def test_importing_the_package_loads_nothing_heavy() -> None:
    """Neither a driver, nor a web framework, nor plotting; nor what only the command line needs."""
    program = f"import sys, minutewheel; print(*(set('{HEAVY}'.split()) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_public_names_are_there_and_sorted() -> None:
    assert minutewheel.__all__ == sorted(minutewheel.__all__)
    for name in minutewheel.__all__:
        assert getattr(minutewheel, name) is not None
