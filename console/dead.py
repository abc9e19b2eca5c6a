"""What is to be done about tasks that will not be tried again? See them, file them anew, or put them away."""

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import Call
from .exits import ExitCode, Failure
from .names import Tenant, tenant_and_id
from .tasks import At, In, Within, tell
from .times import length, length_ms, moment

if TYPE_CHECKING:
    from ..store.task import DeadLetter
    from ..wiring import Installation
    from .output import Output

PAGE = 500
Which = Annotated[str | None, typer.Argument(metavar="[KEY]", help="Which task; or --all.")]
All = Annotated[bool, typer.Option("--all", help="All of them.")]
OfQueue = Annotated[str | None, typer.Option("--queue", "-q", help="With --all: only those of this queue.")]


async def list_(
    call: Call, limit: Annotated[int, typer.Option(min=0, help="At most so many; 0 is all.")] = 1_000
) -> int:
    """List the dead letters: why each died, and after how many starts."""
    from ..wiring import opened

    async with opened(call.settings, create=False) as installation:
        return await list_dead(installation, limit, call.output)


async def redrive(
    call: Call,
    key: Which = None,
    all_: All = False,
    queue: OfQueue = None,
    tenant: Tenant = None,
    in_: In = None,
    at: At = None,
    within: Within = "10s",
) -> int:
    """File dead tasks anew, at once or at a time, with a fresh count of starts."""
    delay, within_ms = length(in_), length_ms(within)

    async def one(client: Any, tenant: str, task_id: str) -> Any:
        return await client.redrive(task_id, at=at, delay=delay, tenant=tenant, within_ms=within_ms)

    return await _each(call, key, all_, queue, tenant, one)


async def drop(
    call: Call,
    key: Which = None,
    all_: All = False,
    queue: OfQueue = None,
    tenant: Tenant = None,
    within: Within = "10s",
) -> int:
    """Put dead letters away for good."""
    within_ms = length_ms(within)

    async def one(client: Any, tenant: str, task_id: str) -> Any:
        return await client.discard(task_id, tenant=tenant, within_ms=within_ms)

    return await _each(call, key, all_, queue, tenant, one)


async def _each(call: Call, key: str | None, all_: bool, queue: str | None, tenant: str | None, one: Any) -> int:
    """Do it to the one that is named, or to all; the exit code is the highest of theirs."""
    from ..wiring import opened

    if (key is None) == (not all_):
        raise Failure("name one task, or say --all", ExitCode.USAGE)
    if queue is not None and not all_:
        raise Failure("--queue goes with --all", ExitCode.USAGE)
    async with opened(call.settings, create=False) as installation:
        client = installation.client()
        if key is not None:
            return tell(await one(client, *tenant_and_id(installation.limits, key, tenant)), call.output)
        code = int(ExitCode.OK)
        async for letter in letters(installation):
            of, _, task_id = letter.key.partition("/")
            if queue in {None, letter.queue} and tenant in {None, of}:
                code = max(code, tell(await one(client, of, task_id), call.output))
        return code


async def letters(installation: "Installation") -> AsyncIterator["DeadLetter"]:
    """All dead letters, by shard and key. Those that come or go meanwhile may be seen or not."""
    from ..store.task import SHARDS
    from .patience import patiently

    for shard in range(SHARDS):
        after = ""
        while page := await patiently(partial(installation.store.dead_letters, shard, after, PAGE)):
            for letter in page:
                yield letter
            after = page[-1].key


async def list_dead(installation: "Installation", limit: int, output: "Output") -> int:
    shown: list[DeadLetter] = []
    cut = False
    async for letter in letters(installation):
        if limit and len(shown) == limit:
            cut = True
            break
        shown.append(letter)
    if output.json:
        for letter in shown:
            output.document(
                {
                    "key": letter.key,
                    "queue": letter.queue,
                    "reason": letter.reason,
                    "starts": letter.attempts,
                    "died_ms": letter.died_ms,
                    "filing": str(letter.filing),
                    "history": letter.history,
                }
            )
    else:
        heads = ("key", "queue", "died", "starts", "reason")
        output.table(heads, ((one.key, one.queue, moment(one.died_ms), one.attempts, one.reason) for one in shown))
    if cut:
        output.note(f"there are more than {limit}: --limit 0 lists all")
    return ExitCode.OK
