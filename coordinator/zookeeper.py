"""How do sessions and leases work when ZooKeeper keeps them?

The real twin. What stands where is in `zookeeper_tree`; the connection and its traps are in `zookeeper_connection`.

- **Taking** a shard is one transaction: the member is still there, the shard's counter is as it was read and is
  raised, and the owner's place is made (or, if it is this session's already, written anew). The raised counter is the
  fence. If anything of it has changed meanwhile nothing is done, and it is read again.
- **Renewing** is a write. A server that is cut off from the others still answers reads, and would let a member believe
  in itself. The same message looks whether owners have changed; a place that was removed by hand counts as a break.
- **An answer that was lost** leaves in doubt whether the shard is this member's. Nobody else could take it, and whoever
  asked may never ask again. So what is in doubt is freed at the next renewal, unless it was acquired again by then.
- **The end** is final: a membership whose session is gone, or whose own place somebody removed, never comes back.
- **The loop** may stand still while kazoo's threads keep the session alive: see `watchdog`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kazoo.exceptions import (
    BadVersionError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)

from .errors import CoordinatorError, CoordinatorUnavailable, LeaseLost, MemberKnown
from .lease import RENEWALS_A_TIMEOUT
from .port import Membership
from .watchdog import Watchdog
from .zookeeper_connection import Connection, Request, granted, log
from .zookeeper_look import Look, creating, deleting, getting, looking_for
from .zookeeper_security import Security
from .zookeeper_tree import Tree, next_fence

SESSION_TIMEOUT_MS = 10_000
ATTEMPTS = 8
"""How often a shard that others change meanwhile is read again, before the caller is told to come back."""
CONFLICTS = (BadVersionError, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency)


def suspend_aware_ms() -> int:
    """Monotonic milliseconds that also count while the machine sleeps, where there is such a clock."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class ZookeeperCoordinator:
    """The way in. It keeps a connection for those who only ask, made when it is first needed: `close` ends it.

    `hosts` is `host:port,host:port`; `chroot` is the path under which everything stands, made when it is missing.
    ZooKeeper grants another session timeout than the one asked for if that is outside of its own bounds.
    """

    def __init__(
        self,
        hosts: str,
        *,
        chroot: str = "/minutewheel",
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        security: Security | None = None,
        monotonic_ms: Callable[[], int] = suspend_aware_ms,
    ) -> None:
        if "/" in hosts:
            raise ValueError(f"the path does not belong to the hosts {hosts!r}: give it as chroot")
        self._hosts = hosts
        self._tree = Tree(chroot)
        self._session_timeout_ms = session_timeout_ms
        self._security = security or Security()
        self._monotonic_ms = monotonic_ms
        self._looking: tuple[Connection, Look] | None = None
        self._turn = asyncio.Lock()
        self._left_behind: set[int] = set()

    async def join(self, member: str) -> Membership:
        connection = await self._open()
        try:
            async with bounded(connection):
                await announce(connection, self._tree, member, self._left_behind)
        except BaseException:
            self._left_behind.add(connection.session_id)
            connection.end("it could not join")
            raise
        return ZookeeperMembership(connection, self._tree, member, self._monotonic_ms)

    async def members(self) -> frozenset[str]:
        async with self._look() as look:
            return await look.members()

    async def owners(self) -> dict[int, str]:
        async with self._look() as look:
            return {shard: holder.member for shard, holder in (await look.holders()).items()}

    async def close(self) -> None:
        """End the connection of those who ask. Memberships have connections of their own."""
        if self._looking:
            connection, _ = self._looking
            connection.end("closed")
            await connection.closed(connection.session_timeout_ms)
            self._looking = None

    async def _open(self) -> Connection:
        return await Connection.open(self._hosts, self._session_timeout_ms, self._security)

    @asynccontextmanager
    async def _look(self) -> AsyncIterator[Look]:
        """One after the other. A session that is over is nothing to those who only ask: they take the next one."""
        async with self._turn:
            if self._looking is None or self._looking[0].over:
                connection = await self._open()
                self._looking = connection, Look(connection, self._tree)
            connection, look = self._looking
            try:
                async with bounded(connection):
                    yield look
            except LeaseLost as lost:
                raise CoordinatorUnavailable(f"ask again: {lost}") from lost


class ZookeeperMembership:
    """One dispatcher's session at ZooKeeper. Made by `ZookeeperCoordinator.join`; ended by `leave`."""

    def __init__(self, connection: Connection, tree: Tree, member: str, monotonic_ms: Callable[[], int]) -> None:
        self.member = member
        self._connection = connection
        self._tree = tree
        self._look = Look(connection, tree)
        self._held: set[int] = set()
        self._in_doubt: set[int] = set()
        self._counted: dict[int, int] = {}
        """Which version of the shard's counter my lease made."""
        self._found_missing = 0
        self._watchdog = Watchdog(lambda: self.session_timeout_ms, monotonic_ms, self._stalled)

    @property
    def session_timeout_ms(self) -> int:
        return self._connection.session_timeout_ms

    @property
    def breaks(self) -> int:
        return self._connection.breaks + self._found_missing

    async def renew(self) -> None:
        """A shard of mine that somebody else freed shows as a break: look at the owners then."""
        self._connection.check()
        self._watchdog.beat()
        held, doubted = set(self._held), set(self._in_doubt)
        async with bounded(self._connection):
            written, listing = await self._connection.ask(self._sign_of_life, self._look.listing)
            if isinstance(written, NoNodeError):
                self._connection.end("somebody removed this member")
                self._connection.check()
            granted(written)
            holders = await self._look.read(listing)
            mine = {shard for shard, holder in holders.items() if holder.session_id == self._connection.session_id}
            missing = held & self._held - mine
            self._held -= missing
            self._found_missing += len(missing)
            self._in_doubt -= doubted - mine
            await self._clear_up()

    async def members(self) -> frozenset[str]:
        async with bounded(self._connection):
            return await self._look.members()

    async def owners(self) -> dict[int, str]:
        """A place that bears my name and was not made by this session is not mine, and is named otherwise."""
        async with bounded(self._connection):
            holders = await self._look.holders()
        session_id = self._connection.session_id
        return {shard: holder.as_seen_by(self.member, session_id) for shard, holder in holders.items()}

    async def acquire(self, shard: int, above: int = 0) -> int | None:
        """After `CoordinatorUnavailable` the shard counts as free: acquire it again, or the next renewal frees it."""
        self._in_doubt.discard(shard)
        try:
            async with bounded(self._connection):
                fence = await self._acquire(shard, above)
        except (CoordinatorUnavailable, asyncio.CancelledError):
            self._in_doubt.add(shard)
            raise
        if fence is not None:
            self._held.add(shard)
        return fence

    async def release(self, shard: int) -> None:
        """What could not be said is said at the next renewal."""
        self._held.discard(shard)
        async with bounded(self._connection):
            await self._free(shard)

    async def withdraw(self) -> None:
        async with bounded(self._connection):
            (made,) = await self._connection.ask(self._withdrawal)
            if isinstance(made, NoNodeError):  # a fleet that an older release set up
                await make_lasting(self._connection, self._tree)
                (made,) = await self._connection.ask(self._withdrawal)
            if not isinstance(made, NodeExistsError):
                granted(made)

    async def leave(self) -> None:
        """If ZooKeeper does not answer, the session runs out there by itself, within a session timeout."""
        self._watchdog.stop()
        self._connection.end("it was left")
        if not await self._connection.closed(self.session_timeout_ms // RENEWALS_A_TIMEOUT):
            log.warning("ZooKeeper did not hear that %s left: its session runs out by itself", self.member)

    async def _acquire(self, shard: int, above: int) -> int | None:
        for _ in range(ATTEMPTS):
            synced, counter, owner = await self._connection.ask(
                self._look.sync, getting(self._tree.fence(shard)), getting(self._tree.owner(shard))
            )
            granted(synced)
            stored, counted = (None, None) if isinstance(counter, NoNodeError) else granted(counter)
            _, made = (None, None) if isinstance(owner, NoNodeError) else granted(owner)
            if made and made.ephemeralOwner != self._connection.session_id:
                return None
            fence = next_fence(shard, stored, above)
            versions = (counted and counted.version, made and made.version)
            (results,) = await self._connection.ask(self._taking(shard, fence, *versions))
            if await self._done(results):
                self._counted[shard] = 0 if counted is None else counted.version + 1
                return fence
        raise CoordinatorUnavailable(f"shard {shard} is being changed by others all the time")

    def _taking(self, shard: int, fence: int, counted: int | None, made: int | None) -> Request:
        """The one transaction, over the versions that were read (None: it was not there)."""
        counter, owner, name = self._tree.fence(shard), self._tree.owner(shard), self.member.encode()

        def commit(client: Any) -> Any:
            transaction = client.transaction()
            transaction.check(self._tree.member(self.member), -1)
            if counted is None:
                transaction.create(counter, b"%d" % fence)
            else:
                transaction.set_data(counter, b"%d" % fence, version=counted)
            if made is None:
                transaction.create(owner, name, ephemeral=True)
            else:
                transaction.set_data(owner, name, version=made)
            return transaction.commit_async()

        return commit

    async def _done(self, results: Any) -> bool:
        """Whether the transaction was done. If not, nothing of it was, and what it met may be read again."""
        refusals = [one for one in (results if isinstance(results, list) else [results]) if isinstance(one, Exception)]
        if isinstance(results, list) and isinstance(results[0], NoNodeError):
            self._connection.end("somebody removed this member")
            self._connection.check()
        for refusal in refusals:
            if not isinstance(refusal, CONFLICTS):
                granted(refusal)
        if any(isinstance(refusal, NoNodeError) for refusal in refusals):
            await make_lasting(self._connection, self._tree)
        return not refusals

    async def _free(self, shard: int) -> None:
        """Remove the owner's place, if this session made it.

        Whoever takes the shard raises its counter: while that is as my lease left it, the place is mine still, and need
        not be read first.
        """
        self._in_doubt.discard(shard)
        counted = self._counted.pop(shard, None)
        try:
            if counted is not None:
                (results,) = await self._connection.ask(self._freeing(shard, counted))
                if isinstance(results, list) and not any(isinstance(one, Exception) for one in results):
                    return
            await self._free_if_mine(shard)
        except (CoordinatorUnavailable, asyncio.CancelledError):
            self._in_doubt.add(shard)
            raise

    def _freeing(self, shard: int, counted: int) -> Request:
        def commit(client: Any) -> Any:
            transaction = client.transaction()
            transaction.check(self._tree.fence(shard), counted)
            transaction.delete(self._tree.owner(shard))
            return transaction.commit_async()

        return commit

    async def _free_if_mine(self, shard: int) -> None:
        (owner,) = await self._connection.ask(getting(self._tree.owner(shard)))
        _, made = (None, None) if isinstance(owner, NoNodeError) else granted(owner)
        if made and made.ephemeralOwner == self._connection.session_id:
            (freed,) = await self._connection.ask(deleting(self._tree.owner(shard), made.version))
            if not isinstance(freed, CONFLICTS):
                granted(freed)

    async def _clear_up(self) -> None:
        """Free what an answer that was lost has left behind. One who held it meanwhile is told by a break."""
        for shard in sorted(self._in_doubt & self._held):
            self._held.discard(shard)
            self._found_missing += 1
        for shard in sorted(self._in_doubt):
            if shard in self._in_doubt:  # it may have been acquired again since the list was made
                await self._free(shard)

    def _sign_of_life(self, client: Any) -> Any:
        return client.set_async(self._tree.member(self.member), b"")

    def _withdrawal(self, client: Any) -> Any:
        return client.create_async(self._tree.leaver(self.member), b"", ephemeral=True)

    def _stalled(self) -> None:
        """In the watchdog's thread."""
        self._connection.end("the event loop stood still for a session timeout")


@asynccontextmanager
async def bounded(connection: Connection) -> AsyncIterator[None]:
    """No verb takes longer than the time between two renewals."""
    connection.check()
    try:
        async with asyncio.timeout(connection.session_timeout_ms / RENEWALS_A_TIMEOUT / 1_000):
            yield
    except TimeoutError:
        connection.check()
        raise CoordinatorUnavailable("ZooKeeper does not answer in time") from None


async def announce(connection: Connection, tree: Tree, member: str, left_behind: set[int]) -> None:
    """Make the member's place. `MemberKnown` if it is there, `CoordinatorUnavailable` if an attempt of our own that
    failed has left it there, until that session runs out."""

    def create(client: Any) -> Any:
        return client.create_async(tree.member(member), b"", ephemeral=True)

    (made,) = await connection.ask(create)
    if isinstance(made, NoNodeError):
        await make_lasting(connection, tree)
        (made,) = await connection.ask(create)
    if isinstance(made, NodeExistsError):
        (there,) = await connection.ask(getting(tree.member(member)))
        if not isinstance(there, Exception) and there[1].ephemeralOwner in left_behind:
            raise CoordinatorUnavailable(f"an earlier attempt of {member} to join has not run out yet")
        raise MemberKnown(f"{member} has joined before")
    granted(made)


async def make_lasting(connection: Connection, tree: Tree) -> None:
    """Make the places that stay. What is there already stays as it is; so does what we may not make."""
    answers = await connection.ask(*[creating(path) for path in tree.lasting()])
    for path, answer in zip(tree.lasting(), answers, strict=True):
        if isinstance(answer, NoAuthError | NoNodeError):
            (there,) = await connection.ask(looking_for(path))
            if there is None:
                raise CoordinatorError(f"{path} is missing in ZooKeeper, and we may not make it")
        elif not isinstance(answer, NodeExistsError):
            granted(answer)
