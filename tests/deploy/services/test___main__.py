import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(("arguments", "code"), [(["status", "--json"], 0), (["kill", "kafka"], 1), ([], 2)])
def test_the_package_can_be_run(tmp_path: Path, arguments: list[str], code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "minutewheel.deploy.services", *arguments],
        env={"MINUTEWHEEL_SERVICES": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout == ("[]\n" if code == 0 else "")
