"""What is wrong with what ZooKeeper grants us, and to whom our folder is open?

Pure.
"""

from collections.abc import Mapping, Sequence

from .finding import Finding

ZOOKEEPER = "zookeeper"
READS_ONLY = 1
NOT_SERVING = "not currently serving requests"


def session_findings(asked_ms: int, granted_ms: int) -> list[Finding]:
    """The servers bound session timeouts by their minSessionTimeout and maxSessionTimeout."""
    if asked_ms == granted_ms:
        return []
    bound = "minSessionTimeout" if granted_ms > asked_ms else "maxSessionTimeout"
    what = f"dispatchers ask for a session of {asked_ms} ms, and {granted_ms} ms are granted"
    do = (
        f"set dispatcher.session_ms to at least {granted_ms}"
        if granted_ms > asked_ms
        else "lower dispatcher.session_ms"
    )
    return [Finding(ZOOKEEPER, "session_timeout", what, f"{do}, or change {bound} of the servers")]


def open_findings(chroot: str, grants: Sequence[tuple[str, int]], *, signed_in: bool) -> list[Finding]:
    """`grants`: (scheme, permissions) of our folder. Those who don't sign in want it open, by their settings."""
    if not signed_in or not any(scheme == "world" and rights > READS_ONLY for scheme, rights in grants):
        return []
    what = f"{chroot} is open to everyone, though zookeeper.username is set: it was made before that"
    do = f"stop the dispatchers; in zkCli.sh: addauth, then setAcl -R {chroot} auth::cdrwa"
    return [Finding(ZOOKEEPER, "folder_open", what, do)]


def no_access_findings(chroot: str) -> list[Finding]:
    what = f"we may not read or write below {chroot}: it belongs to another user, or we don't sign in"
    do = "set zookeeper.username and password to those it was made with, or setAcl there"
    return [Finding(ZOOKEEPER, "folder_access", what, do)]


def server_answers(answers: Mapping[str, str | None]) -> list[Finding]:
    """`answers`: address → what it said of itself, None for nothing."""
    found = []
    for address, answer in answers.items():
        if answer is None:
            what, do = f"{address} does not answer", "start it, or take it out of zookeeper.hosts"
            found.append(Finding(ZOOKEEPER, "server_down", what, do))
        elif NOT_SERVING in answer:
            what, do = f"{address} serves nobody: it has no majority", "start the other servers, and read its log"
            found.append(Finding(ZOOKEEPER, "server_down", what, do))
    return found
