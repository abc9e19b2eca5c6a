"""Has this task done that effect already?

`once(key)` answers true at most once ever for one version of a task and one key, over all its attempts, workers and
repeats of delivery. It is kept in the ledger, in places of its own beside those of the filings: a claim decides who
is first, and a finish before the answer makes it final. So a crash *after* the answer and before the effect loses
the effect: this is the guard for what must not happen twice (a letter, a charge without an idempotency key). What
must happen at least once belongs into the handler as it is, under `idempotency_key`.
"""

from hashlib import blake2b

from ..store.port import ClaimAnswer, Finished, Held, Ledger
from ..store.position import INDEX_BITS, position_of
from .again import until_done
from .claims import Place
from .clock import Clock

HOLD_MS = 10_000
TASKS_A_PLACE_BITS = 10
QUEUE_SUFFIX = "#once"
"""No queue's name has this sign, so these places are never those of filings."""


def place_of(queue: str, shard: int, origin: int) -> Place:
    """The same over all retries of a version; about a thousand tasks of a shard share one."""
    return queue + QUEUE_SUFFIX, shard, position_of(origin) >> (INDEX_BITS + TASKS_A_PLACE_BITS)


def number_of(idempotency_key: str, key: str) -> int:
    """63 bits that stand for the effect, as a filing does for a run."""
    digest = blake2b(f"{idempotency_key}\0{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


async def first_time(ledger: Ledger, clock: Clock, holder: str, place: Place, number: int) -> bool:
    """`holder` must be new for each call. When this took so long that another may have been told yes, say no."""
    sent_ms = 0

    async def claim() -> ClaimAnswer:
        nonlocal sent_ms
        sent_ms, now_ms = clock.monotonic_ms(), clock.now_ms()
        (answer,) = await ledger.claim(place, [number], holder, now_ms, now_ms + HOLD_MS)
        return answer

    while isinstance(answer := await until_done(clock, claim), Held):
        await clock.sleep_ms(max(10, min(1_000, answer.until_ms - clock.now_ms())))
    if isinstance(answer, Finished):
        return False
    await until_done(clock, lambda: ledger.finish(place, [number]))
    return clock.monotonic_ms() - sent_ms < HOLD_MS
