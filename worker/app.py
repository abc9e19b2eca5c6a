"""Which handlers does an application have, and which of them runs a given task?

A handler takes the tasks of one queue. Where a queue has several, the submitter's header `task` names the one; where
it has one, no header is needed, so that a console producer can feed it. What no handler takes is not guessed at: it
fails for good, with a reason that says what was asked for.
"""

import inspect
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar, Unpack, overload

from msgspec.structs import replace

from ..broker.compose import Submission
from ..store.record import Retry as Backoff
from .async_client import Accepted, AsyncClient
from .context import AsyncContext, Context
from .payload import Decode, decoder_for
from .request import Wish
from .request import submission as make_submission

TASK_HEADER = "task"

P = TypeVar("P")


class Handler(Generic[P]):
    """A function that runs tasks, and what its tasks are submitted with.

    `name` is what the header `task` calls it; `timeout_ms` 0 is no timeout. Calling it calls the function.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str,
        queue: str,
        max_attempts: int,
        timeout_ms: int,
        retry: Backoff,
    ) -> None:
        self.function = function
        self.name = name
        self.queue = queue
        self.max_attempts = max_attempts
        self.timeout_ms = timeout_ms
        self.retry = retry
        self.waits = inspect.iscoroutinefunction(function)
        self.payload_type, self.takes_context = _read_signature(function, waits=self.waits)
        self.decode: Decode = decoder_for(self.payload_type)

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def submission(self, payload: P, **wish: Unpack[Wish]) -> Submission:
        """A task for this handler, to be submitted by any client; due at once without `at` or `delay`."""
        submission = make_submission(
            payload,
            queue=self.queue,
            max_attempts=self.max_attempts,
            timeout_ms=self.timeout_ms,
            retry=self.retry,
            **wish,
        )
        return replace(submission, headers={**submission.headers, TASK_HEADER: self.name})

    async def schedule(self, client: AsyncClient, payload: P, **wish: Unpack[Wish]) -> Accepted:
        """Submit a task for this handler: see `submission` and `AsyncClient.submit`."""
        return await client.submit(self.submission(payload, **wish))

    def __repr__(self) -> str:
        return f"<handler {self.name} of queue {self.queue}>"


class _Decorator(Protocol):
    """Makes a handler of a function of the payload, or of the payload and the context that fits its colour."""

    @overload
    def __call__(self, function: Callable[[P], Awaitable[None] | None]) -> Handler[P]: ...
    @overload
    def __call__(self, function: Callable[[P, AsyncContext], Awaitable[None]]) -> Handler[P]: ...
    @overload
    def __call__(self, function: Callable[[P, Context], None]) -> Handler[P]: ...


class App:
    """The handlers of one application; its name is that of its consumer group."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._handlers: dict[str, dict[str, Handler[Any]]] = {}

    def task(
        self,
        name: str | None = None,
        *,
        queue: str = "default",
        max_attempts: int = 5,
        timeout_ms: int = 0,
        retry: Backoff | None = None,
    ) -> _Decorator:
        """Register the function below as a handler; `name` is the function's own unless given.

        `max_attempts` (total starts, the first included), `timeout_ms` and `retry` go with each task that is
        submitted through the handler. A timeout is also kept for tasks that came without one.
        """
        if max_attempts < 1:
            raise ValueError(f"max_attempts counts all starts, so it is at least 1, not {max_attempts}")
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms is 0 (none) or more, not {timeout_ms}")

        def register(function: Callable[..., object]) -> Handler[Any]:
            return self._add(
                Handler(
                    function,
                    name=name or function.__name__,
                    queue=queue,
                    max_attempts=max_attempts,
                    timeout_ms=timeout_ms,
                    retry=retry or Backoff(),
                )
            )

        return register

    def _add(self, handler: Handler[Any]) -> Handler[Any]:
        named = self._handlers.setdefault(handler.queue, {})
        if handler.name in named:
            raise ValueError(f"queue {handler.queue!r} has a handler {handler.name!r} already")
        named[handler.name] = handler
        return handler

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(sorted(self._handlers))

    def handler(self, queue: str, name: str | None) -> Handler[Any]:
        """The handler for a task of the queue whose header `task` says `name`; `LookupError` says why there is none."""
        named = self._handlers.get(queue, {})
        if name is None and len(named) == 1:
            return next(iter(named.values()))
        if name in named:
            return named[name]
        known = ", ".join(sorted(named)) or "none"
        asked = f"a handler {name!r}" if name is not None else f"a header {TASK_HEADER!r} that names one of several"
        raise LookupError(f"queue {queue!r} needs {asked}; handlers here: {known}")


def _read_signature(function: Callable[..., object], *, waits: bool) -> tuple[Any, bool]:
    """The payload's type, and whether a context is taken."""
    parameters = list(inspect.signature(function).parameters.values())
    if not 1 <= len(parameters) <= 2:
        raise TypeError(f"{function.__name__} must take a payload, and a context if it wants one")
    hints = typing.get_type_hints(function)
    if len(parameters) == 2:
        fitting = AsyncContext if waits else Context
        if hints.get(parameters[1].name, fitting) is not fitting:
            raise TypeError(f"the second argument of {function.__name__} must be a {fitting.__name__}")
    return hints.get(parameters[0].name, Any), len(parameters) == 2
