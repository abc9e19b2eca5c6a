"""What the conformance suite can't see: what the ledger forgets, and that it outlives its process."""

from pathlib import Path

import pytest
from minutewheel.store.errors import NotApplied
from minutewheel.store.port import Finished, Granted, Held
from minutewheel.store.sqlite_connection import OneThread, at_once
from minutewheel.store.sqlite_ledger import SqliteLedger
from minutewheel.store.task import MINUTE_MS

PLACE = ("mail", 7, 100)
END_MS = 101 * MINUTE_MS


async def test_pruning_forgets_what_was_let_go_or_finished_long_ago() -> None:
    ledger = await SqliteLedger.open(":memory:", at_once)
    await ledger.claim(PLACE, [1, 2, 3, 4], "a", END_MS, END_MS + 30_000)
    await ledger.finish(PLACE, [1, 5])
    await ledger.release(PLACE, [2], "a", uncount=False)
    await ledger.renew(PLACE, [4], "a", END_MS + 90_000)
    assert await ledger.prune(END_MS) == 0
    assert await ledger.prune(END_MS + 1) == 2
    assert await ledger.claim(PLACE, [1, 2, 5], "b", END_MS, 1) == [Finished(1), Granted(2, 1), Granted(5, 1)]
    await ledger.prune(END_MS + 30_001)
    assert await ledger.claim(PLACE, [1, 3, 4], "b", END_MS + 30_001, END_MS + 60_001) == [
        Granted(1, 1),
        Granted(3, 1),
        Held(4, END_MS + 90_000),
    ]
    await ledger.close()


async def test_the_ledger_remembers_over_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite")
    async with OneThread("ledger") as call:
        first = await SqliteLedger.open(path, call)
        await first.claim(PLACE, [1, 2], "a", 0, 30_000)
        await first.finish(PLACE, [1])
        await first.close()
        with pytest.raises(NotApplied):
            await first.finish(PLACE, [2])
        again = await SqliteLedger.open(path, call)
        assert await again.claim(PLACE, [1, 2], "b", 0, 30_000) == [Finished(1), Held(2, 30_000)]
        await again.close()


async def test_two_workers_share_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite")
    async with OneThread("one") as one, OneThread("other") as other:
        mine, theirs = await SqliteLedger.open(path, one), await SqliteLedger.open(path, other)
        await mine.claim(PLACE, [1, 2], "a", 0, 30_000)
        assert await theirs.claim(PLACE, [1, 3], "b", 1, 30_001) == [Held(1, 30_000), Granted(3, 1)]
        await theirs.finish(PLACE, [3])
        assert await mine.claim(PLACE, [3], "a", 1, 30_001) == [Finished(3)]
        await mine.close()
        await theirs.close()
