import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_mypy_passes_good_code_and_catches_each_wrong_line() -> None:
    checker = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"]
    checked = subprocess.run(
        [*checker, "tests/typing/public_api.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
