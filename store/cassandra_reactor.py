"""How do the driver's connections live in our own event loop, and not in a thread of the driver's?

The driver's own reactors watch the sockets in a thread. Then each statement is handed to that thread and its answer
handed back: two wake-ups, and two waits for the interpreter's lock, which together cost more than the statement's
encoding. Here the loop that asks watches the sockets itself. What is asked in one turn of the loop leaves in one
piece, and all answers that have come are settled in one turn.

The driver still has threads: it opens connections, prepares statements and looks after the cluster in them, and waits
there for answers that the loop reads. So nothing in the loop's thread may ever wait for the driver.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from ssl import SSLWantReadError, SSLWantWriteError
from typing import Any

from cassandra.connection import Connection, ConnectionShutdown

READ_BYTES = 1 << 16
LATER = (BlockingIOError, InterruptedError, SSLWantReadError, SSLWantWriteError)
"""The socket has nothing, or no room, at present."""


class Home:
    """An event loop and its thread. Made in that thread."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def call(self, what: Callable[..., object], *args: object) -> None:
        """Now, if this is the loop's thread, else as soon as the loop comes to it; never if the loop is closed."""
        if threading.get_ident() == self._thread:
            what(*args)
        else:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(what, *args)

    def call_soon(self, what: Callable[..., object]) -> None:
        """After what is under way now."""
        if threading.get_ident() == self._thread:
            self.loop.call_soon(what)
        else:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(what)


class Deadline:
    """A call after some seconds, made and cancelled in any thread. Once `cancel` was heard it does not come."""

    def __init__(self, home: Home, delay_s: float, what: Callable[[], object]) -> None:
        self._home = home
        self._over = False
        self._handle: asyncio.TimerHandle | None = None
        home.call(self._start, delay_s, what)

    def cancel(self) -> None:
        self._home.call(self._cancel)

    def _start(self, delay_s: float, what: Callable[[], object]) -> None:
        if not self._over:
            self._handle = self._home.loop.call_later(delay_s, what)

    def _cancel(self) -> None:
        self._over = True
        if self._handle is not None:
            self._handle.cancel()


class LoopConnection(Connection):  # type: ignore[misc]  # the driver is untyped
    """A connection of the driver's in the loop of its `home`; `connections_at` makes the class."""

    home: Home
    is_closed: bool
    in_buffer_size = READ_BYTES

    @classmethod
    def create_timer(cls, timeout: float, callback: Callable[[], object]) -> Deadline:
        return Deadline(cls.home, timeout, callback)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """In one of the driver's threads: connecting waits."""
        super().__init__(*args, **kwargs)
        self._pushed: deque[bytes] = deque()
        self._unsent = b""
        self._full = False
        self._asked = False
        self._connect_socket()
        self._socket.settimeout(0)
        self._fileno = self._socket.fileno()
        self.home.call(self._watch)
        self._send_options_message()

    def push(self, data: bytes) -> None:
        """Called in any thread. What is pushed in one turn of the loop is sent together."""
        self._pushed.append(data)
        if not self._asked:
            self._asked = True
            self.home.call_soon(self._flush)

    def close(self) -> None:
        """Called in any thread. Whoever waits for an answer is told."""
        with self.lock:
            if self.is_closed:
                return
            self.is_closed = True
        self.home.call(self._unwatch)
        if not self.is_defunct:
            self.error_all_requests(ConnectionShutdown(f"Connection to {self.endpoint} was closed"))

    # In the loop.

    def _watch(self) -> None:
        if not self.is_closed:
            self.home.loop.add_reader(self._fileno, self._read)

    def _unwatch(self) -> None:
        """Before the socket is closed: its number may be another's right after."""
        self.home.loop.remove_reader(self._fileno)
        self.home.loop.remove_writer(self._fileno)
        self._socket.close()

    def _flush(self) -> None:
        self._asked = False  # first: what is pushed from here on asks again, or is taken along
        pushed = self._pushed
        self._unsent += b"".join([pushed.popleft() for _ in range(len(pushed))])
        if not self._full:
            self._send()

    def _send(self) -> None:
        """As much as the socket takes; the rest when it has room."""
        if self.is_closed:
            return
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except LATER:
            pass
        except OSError as error:
            self.defunct(error)
            return
        if bool(self._unsent) != self._full:
            self._full = not self._full
            if self._full:
                self.home.loop.add_writer(self._fileno, self._send)
            else:
                self.home.loop.remove_writer(self._fileno)

    def _read(self) -> None:
        """One piece: if there is more, the loop comes back after its other work."""
        try:
            data = self._socket.recv(self.in_buffer_size)
        except LATER:
            return
        except OSError as error:
            self.defunct(error)
            return
        if data:
            self._iobuf.write(data)
            self.process_io_buffer()
        elif self.connected_event.is_set():
            self.close()
        else:
            self.defunct(ConnectionShutdown(f"{self.endpoint} closed the connection at once"))


def connections_at(home: Home) -> type[LoopConnection]:
    """The driver makes its connections of a class, and its timers by it: so each loop has a class of its own."""
    return type("LoopConnection", (LoopConnection,), {"home": home})
