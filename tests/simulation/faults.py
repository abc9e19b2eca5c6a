"""What can happen to a process, or to a part of the world, at any step?"""

from typing import TYPE_CHECKING

from minutewheel.dispatcher.shard import OVER

if TYPE_CHECKING:
    from .member import Member
    from .world import World

FAULTS = ("crash", "crash", "overlap", "pause", "cut off", "move", "outage", "clock")


def strike(world: "World", fault: str) -> None:
    """It happens to a random member, an owner if there is one. A member that is struck already is left alone."""
    members = [member for member in world.members if member.paused_until_ms <= world.now_ms and not member.slack]
    if not members or (fault in {"crash", "overlap"} and len(members) < 2):
        return
    if fault == "clock" and not world.plan.clocks:
        return
    member = world.random.choice([member for member in members if member.shards] or members)
    world.say("FAULT", fault, member.name)
    world.counts[fault] += 1
    HAPPENS[fault](world, member)


def _crash(world: "World", member: "Member") -> None:
    member.dead = True
    world.gone(member)


def _overlap(world: "World", member: "Member") -> None:
    """It stands still until another has its shards, and then believes for a while that it has them still."""
    member.paused_until_ms = world.now_ms + world.plan.session_ms + world.random.randrange(1_600, 5_000)
    member.slack_until_ms = member.paused_until_ms + world.random.choice([300, 2_000, 8_000])


def _pause(world: "World", member: "Member") -> None:
    member.paused_until_ms = world.now_ms + world.random.choice([500, 5_000, 15_000])


def _cut_off(world: "World", member: "Member") -> None:
    member.line.cut(world.now_ms + world.random.choice([100, 3_000, 7_000, 15_000]))


def _move(world: "World", member: "Member") -> None:
    """One of its shards is handed over."""
    for shard in member.shards.values():
        if shard.life not in OVER:
            shard.drain()
            world.wake(member)
            return


def _outage(world: "World", _: "Member") -> None:
    """The store or the broker does nothing that it is asked."""
    of_broker = world.random.random() < 0.5
    world.outage_until_ms[of_broker] = world.now_ms + world.random.choice([200, 3_000, 15_000])


def _clock(world: "World", member: "Member") -> None:
    world.clocks_off = True
    member.clock.skew_ms = world.random.choice([-90_000, -5_000, -300, 0, 300, 3_000, 90_000])
    world.wake(member)


HAPPENS = {
    "crash": _crash,
    "overlap": _overlap,
    "pause": _pause,
    "cut off": _cut_off,
    "move": _move,
    "outage": _outage,
    "clock": _clock,
}
