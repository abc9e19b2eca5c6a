from pathlib import Path

import pytest
from minutewheel.settings import keys, variable


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    for key in keys():
        monkeypatch.delenv(variable(key), raising=False)
    monkeypatch.delenv("MINUTEWHEEL_CONFIG", raising=False)
