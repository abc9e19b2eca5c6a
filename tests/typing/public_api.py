"""What type checkers must say of the public names: this file is checked, never run.

Each wrong line carries the error that is expected of it; mypy is told to report an `ignore` that nothing needs.
"""

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta

from minutewheel import App, AsyncClient, AsyncContext, Backoff, Client, Context, Handler, Receipt, TaskView, submission
from msgspec import Struct


class Mail(Struct):
    to: str


class Text(Struct):
    number: int


app = App("app")


@app.task(queue="mail", max_attempts=3, retry=Backoff(base_ms=10))
async def send(mail: Mail) -> None: ...


@app.task(queue="mail")
async def send_once(mail: Mail, ctx: AsyncContext) -> None:
    first: bool = await ctx.once("letter")
    assert first


@app.task("text", queue="sms")
def text(message: Text, ctx: Context) -> None:
    first: bool = ctx.once("text")
    assert first


@app.task()
def plain(payload: dict[str, int]) -> None: ...


handlers: tuple[Handler[Mail], Handler[Mail], Handler[Text], Handler[dict[str, int]]] = (send, send_once, text, plain)


@app.task(queue=5)  # type: ignore[arg-type]
async def wrong_queue(mail: Mail) -> None: ...


@app.task()  # type: ignore[arg-type]
async def wrong_context(mail: Mail, ctx: Context) -> None: ...


@app.task()  # type: ignore[arg-type]
def wrong_context_too(mail: Mail, ctx: AsyncContext) -> None: ...


@app.task()  # type: ignore[arg-type]
def too_many(mail: Mail, ctx: Context, more: int) -> None: ...


async def use(client: AsyncClient) -> None:
    await send.schedule(client, Mail("eve"), at=datetime.now(UTC), id="1")
    await text.schedule(client, Text(5), delay=timedelta(minutes=5), priority=1)
    await send.schedule(client, Text(5))  # type: ignore[arg-type]
    await send.schedule(client, Mail("eve"), dealy=timedelta(1))  # type: ignore[call-arg]
    await send.schedule(client, Mail("eve"), on_conflict="ask")  # type: ignore[arg-type]
    await client.submit(submission({"any": "thing"}, queue="mail", timeout_ms=5))
    await client.submit(Mail("eve"))  # type: ignore[arg-type]
    answer: Receipt = await client.cancel("1")
    view: TaskView | None = await client.get("1", tenant="acme")
    del answer, view


def use_plainly(client: Client) -> None:
    answer: Receipt = client.cancel("1")
    for accepted in client.submit_many([send.submission(Mail("eve"))]):
        index: int = accepted.index
        del index
    wrong: Awaitable[Receipt] = client.cancel("1")  # type: ignore[assignment]
    del answer, wrong
