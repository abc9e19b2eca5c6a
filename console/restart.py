"""What can be done when a log was made anew, or has lost records that nobody had applied?

Owners stop taking from such a log and say so once a minute: what stood in it is gone, and only people can say whether
that is accepted. When they do (`minutewheel setup --accept-loss`), each shard goes on at the log's present start.
Nothing else changes: what was applied stays, and positions only grow, for a new incarnation counts above the old.
"""

from typing import TYPE_CHECKING

from ..store.position import pack_position, unpack_position
from ..store.progress import Checkpoint, Offsets
from ..store.task import SHARDS
from .exits import Failure

if TYPE_CHECKING:
    from ..broker.port import Bounds
    from ..wiring import Installation

MEMBER = "setup"


async def accept_loss(installation: "Installation") -> int:
    """Let each shard go on where its logs begin now, if they have lost its place; how many shards were changed.

    `Failure` while a dispatcher runs: its owner would go on with the place that it remembers.
    """
    if members := await installation.coordinator.members():
        raise Failure(f"stop the dispatchers first: {', '.join(sorted(members))}")
    logs = [await installation.broker.bounds(topic, range(SHARDS)) for topic in installation.topics.logs]
    changed = 0
    for shard, bounds in enumerate(zip(*logs, strict=True)):
        changed += await _go_on(installation, shard, bounds)
    return changed


async def _go_on(installation: "Installation", shard: int, bounds: "tuple[Bounds, ...]") -> bool:
    progress = await installation.store.progress(shard, -1)
    first, second, third = (_place(at, its) for at, its in zip(progress.offsets, bounds, strict=True))
    offsets: Offsets = first, second, third
    if offsets == progress.offsets:
        return False
    fence = progress.fence + 1
    await installation.store.claim(shard, fence, MEMBER, -1)
    checkpoint = Checkpoint(fence << 32, offsets, progress.open_minute, progress.dropped_minute)
    if not await installation.store.record(shard, fence, checkpoint):
        raise Failure(f"shard {shard} was taken meanwhile: stop all dispatchers, and try again")
    return True


def _place(at: int, bounds: "Bounds") -> int:
    """The recorded position, or the log's start if that is what is left."""
    place = unpack_position(at)
    lost = place.incarnation != bounds.incarnation or not bounds.start <= place.offset <= bounds.end
    return pack_position(bounds.incarnation, bounds.start) if lost else at
