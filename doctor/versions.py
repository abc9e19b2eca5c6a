"""Are the drivers here and the servers there such as this release was made for?

Pure: what is installed and what runs are arguments.
"""

import re
from collections.abc import Mapping

from .finding import Finding

DRIVERS = {"cassandra-driver": (3, 29), "confluent-kafka": (2, 6), "kazoo": (2, 10)}
"""The lowest of each that has what is asked of it; tried are those that deploy/services starts."""
SERVERS = {"cassandra": (4, 1), "zookeeper": (3, 6)}
"""The lowest that has what we need: ZooKeeper's transactions with reads of the parent's count, say."""


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


def driver_findings(installed: Mapping[str, str]) -> list[Finding]:
    """`installed`: name → version, without those that are not there."""
    found = []
    for name, least in DRIVERS.items():
        has = installed.get(name)
        if has is None or numbers(has) < least:
            what = f"{name} is {has or 'not installed'}; this release needs {_text(least)} or later"
            found.append(Finding("here", "driver_version", what, f"pip install '{name}>={_text(least)}'"))
    return found


def server_findings(service: str, version: str) -> list[Finding]:
    if not version or numbers(version) >= SERVERS[service]:
        return []
    what = f"{service} is {version}; this release needs {_text(SERVERS[service])} or later"
    return [Finding(service, "server_version", what, f"upgrade {service}")]


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
