"""Where are the jars of a product, and how do they get there?

Each product has a pom beside this module, with its pinned versions. Maven copies what it names, with all that this
needs, into one cache for all checkouts: a folder for each digest of a pom, made beside and moved into place when it is
complete.

    ~/.cache/minutewheel/jars/<product>-<digest>/*.jar     another place: MINUTEWHEEL_JARS
"""

import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from .errors import ServiceError

INSTALL_MAVEN = "Maven is needed once, to fetch the services' jars: install it (Debian: apt-get install maven)"
LINES_QUOTED = 15
FETCH_TIMEOUT_S = 600


def jar_cache() -> Path:
    place = os.environ.get("MINUTEWHEEL_JARS")
    return Path(place).expanduser().resolve() if place else Path.home() / ".cache/minutewheel/jars"


def jars(name: str) -> Path:
    """The folder with the jars of `<name>.pom.xml`. Fetches them first if they are not there (10 to 20 s)."""
    pom = files(__package__).joinpath(f"{name}.pom.xml").read_bytes()
    folder = jar_cache() / f"{name}-{sha256(pom).hexdigest()[:12]}"
    if not folder.is_dir():
        _fetch(name, pom, folder)
    return folder


def classpath(name: str) -> str:
    """What Java's `-cp` takes: every jar of `<name>.pom.xml`."""
    return f"{jars(name)}/*"


def _fetch(name: str, pom: bytes, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceError(INSTALL_MAVEN)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as scratch:
        source = Path(scratch) / "pom.xml"
        source.write_bytes(pom)
        _copy(maven, name, source, Path(scratch) / "jars")
        # If another process was quicker, its folder holds the same.
        if not folder.is_dir():
            _settle(Path(scratch) / "jars", folder)


def _copy(maven: str, name: str, pom: Path, folder: Path) -> None:
    arguments = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(  # noqa: S603 - the command is ours
            [maven, "-B", "-q", "-f", str(pom), *arguments],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as fault:
        raise ServiceError(f"Maven did not fetch the jars of {name} in {FETCH_TIMEOUT_S} s") from fault
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-LINES_QUOTED:])
        raise ServiceError(f"Maven could not fetch the jars of {name}; it says:\n{last}")


def _settle(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
