"""Which Java runs the services? Version 17: the one that all three of them support.

Looked for in JAVA_HOME, on the path, and where Debian and Fedora put it.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .errors import ServiceError

VERSION = 17
OPTIONS = ("-XX:+ExitOnOutOfMemoryError", "-XX:TieredStopAtLevel=1")
"""For each of the services. Only the quick compiler: the other one takes more of a few cores in the first minutes than
its code gives back, and tests and trials are over by then."""
PLACES = Path("/usr/lib/jvm")
INSTALL_JAVA = f"Java {VERSION} is needed for the real services"
HOW = f"install it (Debian: apt-get install openjdk-{VERSION}-jre-headless) or set JAVA_HOME"


@cache
def java() -> str:
    """The path of a `java` of the right version; an error that says what to install, if there is none."""
    found = {program: version_of(program) for program in _candidates()}
    for program, version in found.items():
        if version == VERSION:
            return program
    others = ", ".join(f"{program} is version {version or 'unknown'}" for program, version in found.items())
    raise ServiceError(f"{INSTALL_JAVA} ({others or 'there is none'}): {HOW}")


def version_of(program: str) -> int | None:
    """The major version that it says it is: 8, 11, 17 …"""
    try:
        done = subprocess.run([program, "-version"], check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    said = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(said[1]) if said else None


def _candidates() -> Iterator[str]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"{home}/bin/java"
    if program := shutil.which("java"):
        yield program
    yield from map(str, sorted(PLACES.glob(f"*{VERSION}*/bin/java")))
