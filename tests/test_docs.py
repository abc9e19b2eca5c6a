import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.pure
def test_links_between_documents_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([^)#\s]+)", page.read_text())]
    assert [(p.name, to) for p, to in links if "://" not in to and not (p.parent / to).exists()] == []


@pytest.mark.acceptance
def test_the_readme_s_reminder_is_run_by_its_worker(tmp_path: Path) -> None:
    """The example of the README: `dev` with the app in one process, the question in another."""
    environment = {"MINUTEWHEEL_DATA": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = Path(sys.executable).with_name("minutewheel")
    with subprocess.Popen(
        [command, "dev", "--app", "examples.reminders:app", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as serving:
        try:
            assert serving.stdout
            assert msgspec.json.decode(serving.stdout.readline())["serving"]
            asked = subprocess.run(
                [sys.executable, "examples/reminders.py", "call Ada", "0.2"],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            key = asked.stdout.strip()
            line = serving.stdout.readline().decode()
            assert line.startswith(f"{key}:")
            assert line.endswith(": call Ada\n")
        finally:
            serving.terminate()
        assert serving.wait(60) == 0
