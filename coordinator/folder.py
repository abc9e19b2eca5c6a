"""Which process dispatches from this data folder, and which fences were given in it?

Three small files in `<data folder>/coordinator`:

    dispatcher.pid   who is here; its holder keeps it locked (`flock`), so the kernel lets go of it at any death
    fence            one number: no fence above it was ever given
    owners           what its holder holds and whether it goes, for those who ask from other processes; counts only
                     while it is held

The fence file is written before the first of a hundred fences is given and then not again until they are used up, so
taking 64 shards costs one write to the disk and not 64. A crash skips the rest of a hundred, which harms nothing:
fences must grow, not count.

Whether `dispatcher.pid` is held can be tried only by trying to take it, and one who merely asks must not make a
dispatcher that starts at that moment believe that the folder is in use. So both do it one after the other: they hold
the folder itself for the few microseconds that it takes.

Only for file systems of one machine: over a network a lock may be lost, or honoured by nobody.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec
from msgspec import Struct, field

from .errors import CoordinatorUnavailable, DataFolderDamaged, DataFolderInUse

FENCES_AT_ONCE = 100
SUBFOLDER = "coordinator"

P = ParamSpec("P")
T = TypeVar("T")


class Occupant(Struct, frozen=True):
    """The dispatcher that has a data folder."""

    pid: int
    member: str


class Holdings(Struct, frozen=True):
    """What the file `owners` holds."""

    owners: dict[int, str] = field(default_factory=dict)
    withdrawn: bool = False


def refusals_as_unavailable(verb: Callable[P, T]) -> Callable[P, T]:
    """What the file system refuses (no space, no permission) reaches the caller as the port says it."""

    @wraps(verb)
    def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return verb(*args, **kwargs)
        except OSError as refused:
            raise CoordinatorUnavailable(f"the data folder cannot be used: {refused}") from refused

    return asked


class DataFolder:
    """One process's view of a data folder, which it may take. The ground of `local.LocalCoordinator.on_disk`."""

    def __init__(self, path: Path) -> None:
        self.path = path / SUBFOLDER
        self._data_folder = path
        self._held: int | None = None
        self._member = ""
        self._owners: dict[int, str] = {}
        self._withdrawn = False
        self._fence = 0
        self._fences_until = 0

    @refusals_as_unavailable
    def take(self, member: str) -> None:
        """Be the only dispatcher here, or raise `DataFolderInUse`."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._one_at_a_time():
            descriptor = os.open(self._pid_file, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                self._settle_in(descriptor, member)
            except BaseException:
                os.close(descriptor)
                raise

    def _settle_in(self, descriptor: int, member: str) -> None:
        if not locked(descriptor):
            raise DataFolderInUse(str(self._data_folder), read_occupant(descriptor).pid)
        self._fence = self._fences_until = self._read_fence()
        self._withdrawn = False
        self._note_owners({})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(Occupant(os.getpid(), member)), 0)
        self.give_up(self._member)  # of a folder that was removed under this process
        self._held, self._member = descriptor, member

    @refusals_as_unavailable
    def held(self, member: str) -> bool:
        """Still taken, and still the place that others look at (nobody removed the folder)."""
        if self._held is None or member != self._member:
            return False
        try:
            return os.path.samestat(os.fstat(self._held), self._pid_file.stat())
        except FileNotFoundError:
            return False

    def touch(self, member: str) -> None:
        """Nothing runs out here: the kernel ends a session, when the process ends."""

    @refusals_as_unavailable
    def next_fence(self, _shard: int, above: int) -> int:
        """Greater than all that were ever given here, for whichever shard, and than `above`."""
        fence = max(self._fence, above) + 1
        if fence > self._fences_until:
            until = fence + FENCES_AT_ONCE - 1
            self._replace("fence", str(until).encode(), durable=True)
            self._fences_until = until
        self._fence = fence
        return fence

    @refusals_as_unavailable
    def note_owner(self, shard: int, member: str | None) -> None:
        others = {s: m for s, m in self._owners.items() if s != shard}
        self._note_owners(others if member is None else {**others, shard: member})

    def _note_owners(self, owners: dict[int, str]) -> None:
        """For those who ask beside. After a crash nobody holds anything, so it need not be durable."""
        self._replace("owners", msgspec.json.encode(Holdings(owners, self._withdrawn)), durable=False)
        self._owners = owners

    @refusals_as_unavailable
    def withdraw(self, _member: str) -> None:
        self._withdrawn = True
        self._note_owners(self._owners)

    def give_up(self, member: str) -> None:
        if self._held is not None and member == self._member:
            os.close(self._held)
            self._held = None

    @refusals_as_unavailable
    def occupant(self) -> Occupant | None:
        """The dispatcher that is here now, in whichever process."""
        if not self._pid_file.exists():
            return None
        with self._one_at_a_time():
            descriptor = os.open(self._pid_file, os.O_RDONLY)
            try:
                return None if locked(descriptor) else read_occupant(descriptor)
            finally:
                os.close(descriptor)

    @refusals_as_unavailable
    def members(self) -> frozenset[str]:
        occupant = self.occupant()
        return frozenset() if occupant is None or self._holdings().withdrawn else frozenset({occupant.member})

    @refusals_as_unavailable
    def owners(self) -> dict[int, str]:
        """Shard → member, as the dispatcher that is here noted it last; nothing if nobody is."""
        return {} if self.occupant() is None else self._holdings().owners

    def _holdings(self) -> Holdings:
        return msgspec.json.decode((self.path / "owners").read_bytes(), type=Holdings)

    @property
    def _pid_file(self) -> Path:
        return self.path / "dispatcher.pid"

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        folder = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _read_fence(self) -> int:
        try:
            return int((self.path / "fence").read_text())
        except FileNotFoundError:
            return 0
        except ValueError as broken:
            raise DataFolderDamaged(
                f"{self.path / 'fence'} does not hold a number; if it is removed, fences go on above the store's own"
            ) from broken

    def _replace(self, name: str, content: bytes, *, durable: bool) -> None:
        """All or nothing, also for readers beside and after a crash."""
        new = self.path / f"{name}.new"
        with new.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        new.replace(self.path / name)
        if durable:
            folder = os.open(self.path, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def locked(descriptor: int) -> bool:
    """Lock the open file for as long as the descriptor is open, if nobody else has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def read_occupant(descriptor: int) -> Occupant:
    try:
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Occupant)
    except msgspec.DecodeError:
        return Occupant(pid=0, member="")
