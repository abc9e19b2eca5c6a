from typing import Any

import pytest
from minutewheel.broker.compose import Submission
from minutewheel.broker.due import parse_due
from minutewheel.store.record import Retry as Backoff
from minutewheel.worker import App, AsyncContext, Context
from msgspec import Struct, msgpack

pytestmark = pytest.mark.pure


class Mail(Struct):
    to: str


def test_the_only_handler_of_a_queue_takes_what_names_none() -> None:
    app = App("app")

    @app.task(queue="mail")
    async def send(mail: Mail) -> None: ...

    assert app.handler("mail", None) is send
    assert app.handler("mail", "send") is send
    assert app.queues == ("mail",)


def test_one_of_several_must_be_named() -> None:
    app = App("app")

    @app.task(queue="mail")
    async def send(mail: Mail) -> None: ...

    @app.task("fetch it", queue="mail")
    def fetch(mail: Mail) -> None: ...

    assert app.handler("mail", "fetch it") is fetch
    with pytest.raises(LookupError, match="names one of several; handlers here: fetch it, send"):
        app.handler("mail", None)
    with pytest.raises(LookupError, match="a handler 'nobody'"):
        app.handler("mail", "nobody")
    with pytest.raises(LookupError, match="handlers here: none"):
        app.handler("sms", None)
    with pytest.raises(ValueError, match="already"):
        app.task("send", queue="mail")(fetch.function)


def test_a_function_that_can_be_no_handler_is_refused_where_it_is_written() -> None:
    app = App("app")

    def none() -> None: ...
    def three(mail: Mail, ctx: Context, more: int) -> None: ...

    with pytest.raises(TypeError, match="must take a payload"):
        app.task()(none)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must take a payload"):
        app.task()(three)  # type: ignore[arg-type]

    def plain(mail: Mail, ctx: AsyncContext) -> None: ...
    async def waiting(mail: Mail, ctx: Context) -> None: ...
    def undecodable(mail: Context) -> None: ...

    with pytest.raises(TypeError, match="must be a Context"):
        app.task()(plain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a AsyncContext"):
        app.task()(waiting)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no payload can be decoded"):
        app.task()(undecodable)
    with pytest.raises(ValueError, match="at least 1"):
        app.task(max_attempts=0)
    with pytest.raises(ValueError, match="or more"):
        app.task(timeout_ms=-1)


def test_a_handlers_submission_says_what_the_handler_says() -> None:
    app = App("app")

    @app.task(queue="mail", max_attempts=3, timeout_ms=9, retry=Backoff(base_ms=5))
    async def send(mail: Mail) -> None: ...

    submission = send.submission(Mail("eve"), id="1", headers={"trace": "x"})
    assert submission == Submission(
        id="1",
        queue="mail",
        payload=b'{"to":"eve"}',
        delay_ms=0,
        headers={"trace": "x", "task": "send"},
        max_attempts=3,
        retry=Backoff(base_ms=5),
        timeout_ms=9,
    )


async def test_calling_a_handler_calls_its_function() -> None:
    app = App("app")
    sent: list[Mail] = []

    @app.task()
    async def send(mail: Mail) -> None:
        sent.append(mail)

    await send(Mail("eve"))
    assert sent == [Mail("eve")]
    assert repr(send) == "<handler send of queue default>"


def test_the_content_type_says_how_a_payload_is_read(stand: Any) -> None:
    from minutewheel.broker.wire import Record
    from minutewheel.worker.attempt import prepare

    @stand.app.task(queue="mail")
    async def send(mail: Mail) -> None: ...

    packed = msgpack.encode({"to": "eve"})
    message = stand.due("acme/a", payload=packed, headers=(("content-type", b"application/msgpack; v=1"),))
    record = Record(message.topic, 0, 0, 0, message.key, message.value, message.headers)
    assert prepare(stand.app, parse_due(record)) == (send, Mail("eve"))
