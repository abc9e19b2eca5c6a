"""What is one dispatcher's day, of which parts does it consist, and what is known when some of them are over?

A day is played by dispatchers of `SHARDS_EACH` shards, each in parts that follow one another: at the end of a part all
shards are handed over, and their world is written to a file, from which any process goes on. So a run that was
interrupted goes on with the parts that are missing.
"""

import pickle
import resource
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

from ...dispatcher.context import Limits
from ...store.task import MINUTE_MS
from ..profile import MOVED_MS_MAX, Name, Profile
from .accounts import Tally
from .plants import Plant, planted
from .player import Player, Track

SHARDS_EACH = 4
TAIL_MINUTES = MOVED_MS_MAX // MINUTE_MS + 10
"""Played after the last minute, in which nothing new is due: for what was moved there, and for retries."""
UNCLOSED = 2
"""Minutes at the end of all that need not have closed yet."""
PAGE_BYTES = resource.getpagesize()


class Plan(Struct, frozen=True, kw_only=True):
    """What is played: of a load of `fleet_tasks` in all 64 shards the first `shards`, and the minutes of the span."""

    profile: Name
    fleet_tasks: int
    seed: int
    shards: int
    span: tuple[int, int]
    parts: int
    turn_ms: int
    midnight_ms: int
    plant: Plant | None = None

    @property
    def dispatchers(self) -> int:
        return -(-self.shards // SHARDS_EACH)

    def load(self) -> Profile:
        return Profile(self.profile, self.fleet_tasks, self.seed, self.midnight_ms, range(*self.span))

    def shards_of(self, dispatcher: int) -> range:
        return range(dispatcher * SHARDS_EACH, min(self.shards, (dispatcher + 1) * SHARDS_EACH))


class Played(Struct, kw_only=True):
    """What one dispatcher has behind it: so many parts, and what was counted in them.

    `pace` is per virtual minute (tasks fired, checkpoints); `memory_bytes` the most that each part took.
    """

    dispatcher: int
    parts: int = 0
    now_ms: int = 0
    fired: int = 0
    cpu_s: float = 0.0
    late_ms: Counter[int] = field(default_factory=Counter)
    stages: dict[str, float] = {}
    pace: dict[int, tuple[int, int]] = {}
    memory_bytes: list[int] = []
    waiting: int = 0
    """Tasks for a time beyond what is played, once the last part is over."""
    unfinished: int = 0
    """Tasks of minutes that should have closed by the end, and did not."""
    minutes: dict[int, Tally] = {}


class Interrupted(Exception):
    """The part was given up; what was there before it stays."""


def play_part(plan: Plan, dispatcher: int, folder: Path, tell: Callable[[int], bool]) -> Played:
    """Play the next part, and write down where it ended. `tell` takes what is fired, and says whether to go on."""
    profile = plan.load()
    played, tracks = played_so_far(plan, dispatcher, folder), _tracks(plan, profile, dispatcher, folder)
    part = played.parts
    cpu_s = time.process_time()
    player = Player(tracks, played.now_ms, plan.turn_ms, Limits())
    if plan.plant and dispatcher == 0:
        planted(plan.plant, player, tracks[0])
    last = part + 1 == plan.parts
    until_ms = profile.start_ms + len(profile.span) * (part + 1) // plan.parts * MINUTE_MS
    most = 0
    for minute_ms in range(
        player.now_ms // MINUTE_MS * MINUTE_MS, until_ms + last * TAIL_MINUTES * MINUTE_MS, MINUTE_MS
    ):
        before = player.fired, _checkpoints(tracks)
        player.play(minute_ms + MINUTE_MS)
        played.pace[minute_ms // MINUTE_MS] = player.fired - before[0], _checkpoints(tracks) - before[1]
        most = max(most, memory_bytes())
        if not tell(played.fired + player.fired):
            raise Interrupted
    player.hand_over()
    _add(played, player, tracks, time.process_time() - cpu_s, most)
    if last:
        horizon = (until_ms + (TAIL_MINUTES - UNCLOSED) * MINUTE_MS) // MINUTE_MS
        for track in tracks:
            played.unfinished += track.accounts.waiting(below=horizon)
            played.waiting += track.accounts.waiting(above=horizon)
    _save(folder, played, tracks)
    return played


def played_so_far(plan: Plan, dispatcher: int, folder: Path) -> Played:
    """What is on file; the world of the shards, which stands behind it there, is not read."""
    file = _file(folder, dispatcher)
    if not file.exists():
        return Played(dispatcher=dispatcher, now_ms=plan.load().start_ms)
    with file.open("rb") as stream:
        played: Played = pickle.load(stream)  # noqa: S301 - written by `_save`
    return played


def parts_in(folder: Path) -> list[Path]:
    """The files that are kept there."""
    return sorted(folder.glob("dispatcher-*.pickle"))


def memory_bytes() -> int:
    """What this process holds now; where the system does not say, the most that it ever held."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


def _tracks(plan: Plan, profile: Profile, dispatcher: int, folder: Path) -> list[Track]:
    file = _file(folder, dispatcher)
    if not file.exists():
        return [Track(profile, shard) for shard in plan.shards_of(dispatcher)]
    with file.open("rb") as stream:
        pickle.load(stream)  # noqa: S301 - as in `played_so_far`
        tracks: list[Track] = pickle.load(stream)  # noqa: S301 - again
    return tracks


def _save(folder: Path, played: Played, tracks: list[Track]) -> None:
    file = _file(folder, played.dispatcher)
    unfinished = file.with_suffix(".new")
    with unfinished.open("wb") as stream:
        pickle.dump(played, stream)
        pickle.dump(tracks, stream)
    unfinished.replace(file)


def _file(folder: Path, dispatcher: int) -> Path:
    return folder / f"dispatcher-{dispatcher:02d}.pickle"


def _add(played: Played, player: Player, tracks: list[Track], cpu_s: float, memory: int) -> None:
    played.parts += 1
    played.now_ms = player.now_ms
    played.fired += player.fired
    played.cpu_s += cpu_s
    played.late_ms.update(player.late_ms)
    for stage, seconds in player.stages.seconds.items():
        played.stages[stage] = played.stages.get(stage, 0.0) + seconds
    played.memory_bytes.append(memory)
    played.minutes = {}
    for track in tracks:
        for minute, tally in track.accounts.closed.items():
            played.minutes.setdefault(minute, Tally()).add(tally)


def _checkpoints(tracks: list[Track]) -> int:
    return sum(track.shelf.checkpoints for track in tracks)
