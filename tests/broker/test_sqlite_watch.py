import asyncio
from collections import deque

import pytest
from minutewheel.broker.sqlite_watch import Watch


class Moves:
    """Something that others move: what they moved is seen when it is looked at."""

    def __init__(self) -> None:
        self.moved: deque[int | str | None] = deque()
        self.unseen: deque[int | str | None] = deque()
        self.seen: set[int | str | None] = set()
        self.looks = 0
        self.fail = False
        self.looked = asyncio.Event()
        self.watch = Watch(self.glance, self.look, self.moved)

    def glance(self) -> bool:
        self.looks += 1
        self.looked.set()
        return bool(self.unseen) or self.fail

    async def look(self) -> None:
        if self.fail:
            self.fail = False
            raise OSError("no disk")
        self.moved.extend(self.unseen)
        self.seen.update(self.unseen)
        self.unseen.clear()

    async def wait_looked(self) -> None:
        self.looked.clear()
        await self.looked.wait()

    async def wait_for(self, *keys: int | str) -> None:
        """As the broker does it, for a wait may end without a move."""
        while self.seen.isdisjoint(keys):
            await self.watch.wait_moved(keys, 60)

    def wait(self, *keys: int | str) -> asyncio.Task[None]:
        return asyncio.create_task(self.wait_for(*keys))

    def move(self, key: int | str) -> None:
        """Move something in this very process."""
        self.seen.add(key)
        self.moved.append(key)
        self.watch.wake()


async def test_only_those_whose_key_moved_are_woken() -> None:
    moves = Moves()
    first, second, both = moves.wait(1), moves.wait("team"), moves.wait(1, "team")
    await asyncio.sleep(0)
    moves.move("team")
    await asyncio.gather(second, both)
    assert not first.done()
    first.cancel()


async def test_all_are_woken_when_everything_has_moved() -> None:
    moves = Moves()
    waiting = [asyncio.create_task(moves.watch.wait_moved((n,), 60)) for n in range(5)]
    await asyncio.sleep(0)
    moves.moved.append(None)
    moves.watch.wake()
    await asyncio.gather(*waiting)


async def test_one_looks_for_all() -> None:
    moves = Moves()
    waiting = [moves.wait(n) for n in range(50)]
    await moves.wait_looked()
    moves.unseen.append(49)
    await waiting[49]
    assert moves.looks < 50
    for each in waiting:
        each.cancel()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("order", [range(9), range(8, -1, -1)])
async def test_when_the_looker_leaves_another_looks(order: range, *, at_once: bool) -> None:
    moves = Moves()
    waiting = [moves.wait(n) for n in range(10)]
    await asyncio.sleep(0)
    for n in order:
        waiting[n].cancel()
        if not at_once:
            await moves.wait_looked()
    moves.unseen.append(9)
    await waiting[9]


async def test_nobody_looks_where_nobody_waits() -> None:
    moves = Moves()
    waiting = moves.wait(1)
    await moves.wait_looked()
    moves.unseen.append(1)
    await waiting
    looks = moves.looks
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(moves.wait_looked(), 0.03)
    assert moves.looks == looks


async def test_a_wait_in_vain_ends_in_its_time() -> None:
    moves = Moves()
    await moves.watch.wait_moved((1,), 0.02)
    assert moves.looks > 0


async def test_an_error_of_the_look_is_the_lookers_and_another_looks_on() -> None:
    moves = Moves()
    fails, other = moves.wait(1), moves.wait(2)
    await moves.wait_looked()
    moves.fail = True
    with pytest.raises(OSError, match="no disk"):
        await fails
    moves.unseen.append(2)
    await other
