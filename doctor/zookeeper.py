"""What does ZooKeeper grant us, to whom is our folder open, and what does each of its servers say?"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kazoo.exceptions import NoAuthError, NoNodeError

from .. import fleet
from ..coordinator.zookeeper_connection import Connection, Request, granted
from ..dispatcher.clock import SystemClock
from ..settings import Settings
from .clocks import Reading, clock_findings
from .ensemble import ZOOKEEPER, no_access_findings, open_findings, server_answers, session_findings
from .finding import Finding
from .versions import server_findings

PATIENCE_S = 3.0


async def zookeeper_findings(settings: Settings, clock: SystemClock, found: list[Finding]) -> None:
    """Put into `found` what is wrong. `CoordinatorError` when nobody answers any more."""
    zookeeper = settings.zookeeper
    asked_ms = settings.dispatcher.session_ms
    if zookeeper.security == "plaintext":
        found += await _servers(zookeeper.hosts)
    connection = await Connection.open(",".join(zookeeper.hosts), asked_ms, fleet.zookeeper_security(zookeeper))
    try:
        found += session_findings(asked_ms, connection.session_timeout_ms)
        found += await _folder(connection, zookeeper.chroot, clock, signed_in=bool(zookeeper.username))
    finally:
        connection.end("the questions are answered")
        await connection.closed(2_000)


async def _folder(connection: Connection, chroot: str, clock: SystemClock, *, signed_in: bool) -> list[Finding]:
    """A folder that is not there yet is made by the first dispatcher."""
    (grants,) = await connection.ask(lambda client: client.get_acls_async(chroot))
    if isinstance(grants, NoNodeError):
        return []
    before_ms = clock.now_ms()
    (made,) = await connection.ask(_making(f"{chroot}/doctor-{connection.session_id:x}"))
    if isinstance(grants, NoAuthError) or isinstance(made, NoAuthError):
        return no_access_findings(chroot)
    with_whom, _ = granted(grants)
    _, stat = granted(made)
    found = open_findings(chroot, [(acl.id.scheme, acl.perms) for acl in with_whom], signed_in=signed_in)
    return found + clock_findings(ZOOKEEPER, Reading(before_ms, stat.ctime, clock.now_ms()))


def _making(path: str) -> Request:
    """Goes with the session."""
    return lambda client: client.create_async(path, b"", ephemeral=True, include_data=True)


async def _servers(hosts: Sequence[str]) -> list[Finding]:
    answers = await asyncio.gather(*map(_said_by, hosts))
    found = server_answers(dict(zip(hosts, answers, strict=True)))
    for answer in answers:
        if answer is not None and answer.startswith("Zookeeper version: "):
            found += server_findings(ZOOKEEPER, answer.removeprefix("Zookeeper version: ").partition("-")[0])
    return found


async def _said_by(host: str) -> str | None:
    """What the server says of itself, "" if it does not like to be asked, None if it is not there."""
    address, _, port = host.rpartition(":")
    writer: Any = None
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(address.strip("[]"), int(port))
            writer.write(b"srvr")
            return (await reader.read()).decode(errors="replace")
    except (OSError, TimeoutError):
        return None
    finally:
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
