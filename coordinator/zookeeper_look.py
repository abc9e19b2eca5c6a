"""Who is alive and who owns what, as ZooKeeper shows it now?

A server may be behind the others, so each look begins with a `sync`: what is read then is never older than the call.

The owners stand in 64 places. To read them all each second would be most of what the loop has to do with ZooKeeper.
But their common parent counts: each place that is made or goes raises a number there by one. While that number stays,
the owners are those of the last look, which is as fresh an answer as reading them again. When it has risen by no more
than the names that came and went, all others stand as they stood, and only what came is read.
"""

from typing import Any

from kazoo.exceptions import NoNodeError

from .zookeeper_connection import Connection, Request, granted
from .zookeeper_tree import Holder, Tree, shard_of


class Look:
    """Looks through one connection."""

    def __init__(self, connection: Connection, tree: Tree) -> None:
        self._connection = connection
        self._tree = tree
        self._holders: dict[int, Holder] = {}
        self._seen: tuple[int, int] | None = None

    async def members(self) -> frozenset[str]:
        """Those who have a place and have not withdrawn."""
        synced, there, leaving = await self._connection.ask(
            self.sync, children(self._tree.members), children(self._tree.leaving)
        )
        granted(synced)
        there, leaving = ([] if isinstance(names, NoNodeError) else granted(names) for names in (there, leaving))
        return frozenset(there) - frozenset(leaving)

    async def holders(self) -> dict[int, Holder]:
        """Shard → whose it is; free shards are left out."""
        synced, listing = await self._connection.ask(self.sync, self.listing)
        granted(synced)
        return await self.read(listing)

    async def read(self, listing: Any) -> dict[int, Holder]:
        """The holders behind a `listing` that was just answered."""
        if isinstance(listing, NoNodeError):
            self._holders, self._seen = {}, None
            return {}
        names, stat = granted(listing)
        there = {shard for name in names if (shard := shard_of(name)) is not None}
        seen, at = self._seen, (stat.cversion, stat.pzxid)
        if at != seen:
            kept = dict.fromkeys(there & self._holders.keys())
            changed = len(there ^ self._holders.keys())
            if seen is None or stat.cversion - seen[0] != changed:
                kept = {}
            fresh = await self._read_each(sorted(there - kept.keys()))
            self._holders = {shard: self._holders[shard] for shard in kept} | fresh
            self._seen = at
        return dict(self._holders)

    async def _read_each(self, shards: list[int]) -> dict[int, Holder]:
        answers = await self._connection.ask(*[getting(self._tree.owner(shard)) for shard in shards])
        here = [(s, granted(a)) for s, a in zip(shards, answers, strict=True) if not isinstance(a, NoNodeError)]
        return {s: Holder(content.decode(errors="replace"), stat.ephemeralOwner) for s, (content, stat) in here}

    def sync(self, client: Any) -> Any:
        """A request: let the server catch up with the others first."""
        return client.sync_async(self._tree.root)

    def listing(self, client: Any) -> Any:
        """A request: which shards have owners, and the parent's count of changes."""
        return client.get_children_async(self._tree.owners, include_data=True)


def children(path: str) -> Request:
    return lambda client: client.get_children_async(path)


def getting(path: str) -> Request:
    return lambda client: client.get_async(path)


def creating(path: str) -> Request:
    return lambda client: client.create_async(path, b"")


def deleting(path: str, version: int) -> Request:
    return lambda client: client.delete_async(path, version=version)


def looking_for(path: str) -> Request:
    """Answers None if nothing is there."""
    return lambda client: client.exists_async(path)
