"""How does an event loop talk to ZooKeeper, whose client lives in threads of its own?

kazoo is used for its connection and its low-level calls; its recipes are not. What it does, and what follows:

- Its listener is called in the connection's thread, where nothing may wait. It counts a break, and says all else to
  the loop. A call that waits for an answer in there would hang for ever.
- Its answers come in another thread. They are collected, and the loop is woken once for many of them.
- After a session has ended it begins the next one by itself. Here the end is final: the client is closed at once, and
  requests that were on their way are answered with the end.
- It remembers the newest transaction that it saw, and a server that knows less refuses it, without saying why. An
  ensemble that lost its data knows less for a long time. So that memory is wiped at each break: the server then says
  plainly that it has no such session. Reads lose nothing by it, since each is preceded by a `sync`.
- It does not tell which session timeout was granted: that is read in the answer to its first message.
- It wakes its thread by a byte in a socket pair. Some 270 bytes that nobody reads fill it, and then the sender waits:
  so there are never more than `IN_FLIGHT_MAX` requests on their way.
"""

import asyncio
import logging
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    SystemZookeeperError,
    ThrottledOpError,
    ZookeeperError,
)
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Connect

from .errors import CoordinatorError, CoordinatorUnavailable, LeaseLost
from .zookeeper_security import Security

IN_FLIGHT_MAX = 100
RETRY = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
"""Pauses between two attempts to connect, in seconds. kazoo's own would grow to a minute."""

OVER = (SessionExpiredError, AuthFailedError)
UNKNOWN = (
    ConnectionLoss,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionMovedError,
    SystemZookeeperError,
    ThrottledOpError,
)
"""Done or not, nobody knows. All other refusals are the server's answer: it was not done."""

Request = Callable[[Any], Any]
"""Takes kazoo's client, sends something, and gives kazoo's asynchronous result of it."""

log = logging.getLogger("minutewheel.coordinator")


class Remarks(logging.LoggerAdapter[logging.Logger]):
    """kazoo's log. Its last warning says why nothing is reached; what it says below `INFO` may hold a password."""

    last = "no answer"

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if level >= logging.WARNING:
            self.last = str(msg) % args if args else str(msg)
        if level >= logging.INFO:
            self.logger.log(level if level >= logging.ERROR else logging.DEBUG, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        return msg, kwargs


class Plug(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, with a way to connect that leaves no socket open when it fails."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._context = context

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float | None = None, **_: object
    ) -> socket.socket:
        """`hostname` is what the certificate must be for; `address` is what it stands for. `OSError` if it fails."""
        plain = socket.create_connection(address, timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain, server_hostname=hostname) if self._context else plain


class Connection:
    """One session at ZooKeeper, from `open` to its end. To be used from one event loop.

    `breaks` counts the moments in which it came into doubt, `over` is why it ended ("" while it lives): both are
    set in whichever thread sees it, at once.
    """

    def __init__(self, hosts: str, session_timeout_ms: int, security: Security) -> None:
        self.breaks = 0
        self.over = ""
        self.session_timeout_ms = 0
        self.session_id = 0
        self._hosts = hosts
        self._loop = asyncio.get_running_loop()
        self._connected = asyncio.Event()
        self._room = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._shut: asyncio.Future[bool] = self._loop.create_future()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._answers: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._woken = False
        self._counting = threading.Lock()
        self._remarks = Remarks(log)
        self._client = KazooClient(
            hosts=hosts,
            timeout=session_timeout_ms / 1_000,
            handler=Plug(security.context()),
            logger=self._remarks,
            connection_retry=RETRY,
            auth_data=security.credentials(),
            default_acl=security.acl(),
        )
        self._client.add_listener(self._changed)
        self._learn_what_is_granted()

    @classmethod
    async def open(cls, hosts: str, session_timeout_ms: int, security: Security) -> "Connection":
        """Begin a session, or raise `CoordinatorUnavailable` with the reason within a session timeout."""
        connection = cls(hosts, session_timeout_ms, security)
        connection._client.start_async()
        try:
            async with asyncio.timeout(session_timeout_ms / 1_000):
                await connection._reached()
        except TimeoutError:
            why = connection._remarks.last
            connection.end("never connected")
            raise CoordinatorUnavailable(f"no session at ZooKeeper {hosts}: {why}") from None
        except BaseException:
            connection.end("never connected")
            raise
        return connection

    async def ask(self, *requests: Request) -> list[Any]:
        """Send these in this order, one right after the other, and wait for all the answers.

        What the server refuses is an exception among the answers (`granted` raises it). `CoordinatorUnavailable`
        when the connection broke meanwhile, `LeaseLost` once the session is over. While there is no connection it
        waits for one: the caller bounds it.
        """
        await self._reached()
        sent = [await self._send(request) for request in requests]
        answers = [await one for one in sent]
        for answer in answers:
            if isinstance(answer, OVER):
                self.end(f"ZooKeeper said so ({type(answer).__name__})")
            elif isinstance(answer, UNKNOWN):
                raise CoordinatorUnavailable(f"the connection to ZooKeeper {self._hosts} broke: {self._remarks.last}")
        self.check()
        return answers

    def check(self) -> None:
        if self.over:
            raise LeaseLost(f"the session at ZooKeeper is over: {self.over}")

    def end(self, reason: str) -> None:
        """It is over from now on, for the first reason that is given. From any thread; returns at once.

        The closing may take a session timeout when nobody answers, so it gets a thread of its own.
        """
        with self._counting:
            if self.over:
                return
            self.over = reason
            self.breaks += 1
        self._tell(self._answer_with_the_end)
        threading.Thread(target=self._close, name="minutewheel-zookeeper-close", daemon=True).start()

    async def closed(self, patience_ms: int) -> bool:
        """After `end`: did the closing come to its end within this time?"""
        done, _ = await asyncio.wait({self._shut}, timeout=patience_ms / 1_000)
        return bool(done) and self._shut.result()

    # In the loop.

    async def _reached(self) -> None:
        self.check()
        await self._connected.wait()
        self.check()

    async def _send(self, request: Request) -> asyncio.Future[Any]:
        await self._room.acquire()
        future = self._loop.create_future()
        self._waiting.add(future)
        request(self._client).rawlink(lambda result: self._answered(future, result))
        return future

    def _take_answers(self) -> None:
        self._woken = False  # before the first is taken: what comes from now on wakes again
        while self._answers:
            future, result = self._answers.popleft()
            self._settle(future, result.value if result.successful() else result.exception)

    def _answer_with_the_end(self) -> None:
        for future in list(self._waiting):
            self._settle(future, SessionExpiredError())
        self._connected.set()

    def _settle(self, future: asyncio.Future[Any], answer: Any) -> None:
        """An answer may come twice, and to one who waits no more."""
        if future in self._waiting:
            self._waiting.remove(future)
            self._room.release()
            if not future.done():
                future.set_result(answer)

    def _note_closed(self, acknowledged: bool) -> None:  # noqa: FBT001  called by the loop, which passes no names
        if not self._shut.done():
            self._shut.set_result(acknowledged)

    # In kazoo's threads, or in our own.

    def _changed(self, state: str) -> None:
        """The client's listener, in the connection's thread: nothing here may wait."""
        if state == KazooState.CONNECTED:
            self._tell(self._connected.set)
        elif state == KazooState.SUSPENDED:
            with self._counting:
                self.breaks += 1
            self._client.last_zxid = 0
            self._tell(self._connected.clear)
        else:
            self.end("it ran out, or ZooKeeper does not know it")

    def _answered(self, future: asyncio.Future[Any], result: Any) -> None:
        self._answers.append((future, result))
        if not self._woken:
            self._woken = True
            self._tell(self._take_answers)

    def _tell(self, what: Callable[..., None], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is there to be told
            self._loop.call_soon_threadsafe(what, *args)

    def _close(self) -> None:
        acknowledged = self._client.connected
        try:
            self._client.stop()
            self._client.close()
        except Exception as error:  # noqa: BLE001  whatever it is, the session runs out by itself
            log.warning("the connection to ZooKeeper could not be closed: %s", error)
            acknowledged = False
        self._tell(self._note_closed, acknowledged)

    def _learn_what_is_granted(self) -> None:
        """The client asks for a session timeout and keeps to itself what it got: look at the answer as it comes."""
        handler = self._client._connection  # noqa: SLF001  there is no public way to it
        invoke = handler._invoke  # noqa: SLF001  the same

        def invoke_and_learn(timeout: float, request: Any, xid: int | None = None) -> Any:
            answer = invoke(timeout, request, xid)
            if isinstance(request, Connect) and answer[0].time_out > 0 and not self.over:
                self.session_timeout_ms = answer[0].time_out
                self.session_id = answer[0].session_id
            return answer

        handler._invoke = invoke_and_learn  # noqa: SLF001  the same


def granted(answer: Any) -> Any:
    """The answer, if it is none of the server's refusals; else `CoordinatorError` says which."""
    if isinstance(answer, ZookeeperError):
        raise CoordinatorError(f"ZooKeeper refused: {type(answer).__name__} {answer}".rstrip()) from answer
    if isinstance(answer, Exception):
        raise CoordinatorError(f"ZooKeeper's answer makes no sense: {answer}") from answer
    return answer
