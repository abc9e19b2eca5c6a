"""How do the embedded twins speak to their SQLite file, and in which thread?

A `Connection` runs pieces of work, each in one transaction, and tells its failures apart as the ports promise: what
fails before the COMMIT is `NotApplied`, a COMMIT that fails is an `UnknownOutcome` (its frames may stand in the
write-ahead log all the same, and be found there at the next opening). The log makes readers and the one writer of
all processes independent: a reader never waits, a second writer waits `busy_timeout_ms`.

A `Call` says where the work runs. `OneThread` is the product's: the event loop never waits for the disk. `at_once`
runs it in the caller, for ":memory:" and for simulations, in which nothing real may run in a thread.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Protocol, Self, TypeVar, TypeVarTuple, cast

from .errors import NewerSchema, NotApplied, StoreError, UnknownOutcome

T = TypeVar("T")
Args = TypeVarTuple("Args")

BUSY_TIMEOUT_MS = 5_000
CACHE_KIB = 32 * 1024
GROUP_MAX = 1_000
"""Writes committed together at the most."""
LOG_BYTES_KEPT = 64 * 1024 * 1024
"""A write-ahead log that one huge transaction has grown is cut to this when it is next reset."""

Synchronous = Literal["FULL", "NORMAL", "OFF"]
"""FULL: what is committed survives the loss of power. NORMAL: the kill of the process only. OFF: for tests."""


class Call(Protocol):
    """Runs a function somewhere, and answers with what it returned or raised."""

    async def __call__(self, fn: Callable[[*Args], T], *args: *Args) -> T: ...


async def at_once(fn: Callable[[*Args], T], *args: *Args) -> T:
    """The call that runs at once, in the caller."""
    return fn(*args)


class OneThread:
    """The call that runs one function after the other in a thread of its own.

    A call that is cancelled before its turn never runs; one that has begun runs to its end all the same.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def __call__(self, fn: Callable[[*Args], T], *args: *Args) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, fn, *args)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Return when all that was asked has run and the thread has ended."""
        try:
            await self(lambda: None)
        finally:
            self._thread.shutdown()


@dataclass(frozen=True)
class Schema:
    """The tables of a file. `version` stands in its `user_version`; 0 there is a file that has none yet."""

    version: int
    tables: str


class Connection:
    """One connection to one file, for one thread at a time."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @classmethod
    def open(
        cls, path: str, schema: Schema, *, synchronous: Synchronous = "FULL", busy_timeout_ms: int = BUSY_TIMEOUT_MS
    ) -> Self:
        """Open the file, made with its tables if there is none; `NewerSchema` if a later release has made it."""
        try:
            db = sqlite3.connect(path, timeout=busy_timeout_ms / 1_000, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StoreError(f"{path}: {error}") from error
        try:
            _keep_log(db, busy_timeout_ms)
            db.execute(f"PRAGMA synchronous = {synchronous}")
            db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            db.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
            connection = cls(db)
            connection.write(_create, path, schema)
        except sqlite3.Error as error:
            db.close()
            raise StoreError(f"{path}: {error}") from error
        except BaseException:
            db.close()
            raise
        return connection

    def close(self) -> None:
        self._db.close()

    def write(self, work: Callable[[sqlite3.Connection, *Args], T], *args: *Args) -> T:
        """Run the work in one transaction: all of it is done, or none."""
        answer = self._run("BEGIN IMMEDIATE", work, *args)
        try:
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise UnknownOutcome(f"at the commit: {error}") from error
        return answer

    def read(self, work: Callable[[sqlite3.Connection, *Args], T], *args: *Args) -> T:
        """Run the work on one unchanging view of the file."""
        answer = self._run("BEGIN", work, *args)
        self._roll_back()
        return answer

    def _run(self, begin: str, work: Callable[[sqlite3.Connection, *Args], T], *args: *Args) -> T:
        try:
            self._db.execute(begin)
            return work(self._db, *args)
        except sqlite3.Error as error:
            self._roll_back()
            raise NotApplied(str(error)) from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Leave the transaction; some errors have done so already, and none may hide the one that led here."""
        with suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


class _Piece:
    """One write that waits for its turn, or has had it."""

    def __init__(self, work: Callable[[sqlite3.Connection], object]) -> None:
        self.work = work
        self.settled = False
        self.answer: object = None
        self.error: BaseException | None = None

    def settle(self, error: BaseException | None = None) -> None:
        self.settled, self.error = True, error


class GroupCommit:
    """Writes of many callers, as few transactions: what waits for the thread when its turn comes is committed as one.

    So an fsync is paid once for all that came meanwhile. Each piece of work is still all or nothing by itself, and
    answered only after the commit.
    """

    def __init__(self, connection: Connection, call: Call) -> None:
        self._connection = connection
        self._call = call
        self._waiting: deque[_Piece] = deque()

    async def write(self, work: Callable[[sqlite3.Connection, *Args], T], *args: *Args) -> T:
        """Run the work in a transaction, alone or with others'. Errors as those of `Connection.write`."""
        piece = _Piece(lambda db: work(db, *args))
        self._waiting.append(piece)
        try:
            await self._call(self._flush, piece)
        finally:
            if not piece.settled:
                with suppress(ValueError):
                    self._waiting.remove(piece)  # given up before its turn: nobody else runs it
        if piece.error is not None:
            raise piece.error
        return cast("T", piece.answer)

    def _flush(self, piece: _Piece) -> None:
        """Commit all that waits, unless another's turn has taken this piece along."""
        if piece.settled:
            return
        taken: list[_Piece] = []
        with suppress(IndexError):
            while len(taken) < GROUP_MAX or piece not in taken:
                taken.append(self._waiting.popleft())
        try:
            self._connection.write(_run_each, taken)
        except BaseException as error:  # noqa: BLE001 - whatever it is, none of them may take it for done
            for each in taken:
                each.settle(error)
        else:
            for each in taken:
                each.settle(each.error)


def _run_each(db: sqlite3.Connection, pieces: Sequence[_Piece]) -> None:
    for piece in pieces:
        db.execute("SAVEPOINT piece")
        try:
            piece.answer = piece.work(db)
        except sqlite3.Error as error:
            if not db.in_transaction:
                raise  # some errors end the whole transaction: then nothing of it was done
            piece.error = NotApplied(str(error))
            piece.error.__cause__ = error
            db.execute("ROLLBACK TO piece")
        except Exception as error:  # noqa: BLE001 - whose it is hears of it; the others are not concerned
            piece.error = error
            db.execute("ROLLBACK TO piece")
        db.execute("RELEASE piece")


def _keep_log(db: sqlite3.Connection, busy_timeout_ms: int) -> None:
    """Switch to the write-ahead log. SQLite does not wait for its turn here when several processes make a new file
    at once, so this does."""
    deadline = time.monotonic() + busy_timeout_ms / 1_000
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _create(db: sqlite3.Connection, path: str, schema: Schema) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > schema.version:
        raise NewerSchema(path, version, schema.version)
    if version == schema.version:
        return
    for statement in schema.tables.split(";"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version = {schema.version}")
