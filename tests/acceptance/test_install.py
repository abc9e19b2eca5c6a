"""What does `pip install` put into an environment that is not ours?"""

import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
BOTH_WORK = """
import minutewheel.wheel, wheel, wheel.wheelfile
print(wheel.wheelfile.WheelFile.__name__, len(minutewheel.wheel.Wheel(0)))
"""


def test_installing_leaves_the_package_called_wheel_as_it_is(tmp_path: Path) -> None:
    def run(*command: object) -> str:
        done = subprocess.run([*map(str, command)], cwd=tmp_path, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    python = tmp_path / "venv/bin/python"
    # A copy, because building leaves folders behind.
    copytree(ROOT, tmp_path / "source", ignore=ignore_patterns(".*", "typings", "build", "*.egg-info"))
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    run(python, "-m", "pip", "install", "wheel")
    run(python, "-m", "pip", "install", tmp_path / "source")
    assert run(python, "-c", BOTH_WORK) == "WheelFile 0\n"
    run(python, "-m", "pip", "uninstall", "--yes", "minutewheel")
    assert run(python, "-c", "import wheel.wheelfile; print('stays')") == "stays\n"
