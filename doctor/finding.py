"""What is a finding: one thing that is wrong, and what to do about it?"""

from msgspec import Struct


class Finding(Struct, frozen=True):
    """`service` is kafka, cassandra, zookeeper or this machine (`here`); `code` is stable, for scripts (docs/fleet.md
    lists all); `what` is what was found, `do` what to do. Both are plain sentences."""

    service: str
    code: str
    what: str
    do: str
