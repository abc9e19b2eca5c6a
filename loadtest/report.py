"""What does a load test tell, and to whom? The one form of its report, as JSON and for the page that is drawn from it.

Times of day are Unix milliseconds; those of series count from `started_ms`. Units stand last in each name.
"""

from msgspec import Struct


class Counts(Struct, frozen=True, kw_only=True):
    """Of tasks. `rejected` were refused at the door, `recovered` fired after their shard had changed hands."""

    submitted: int = 0
    accepted: int = 0
    rejected: int = 0
    fired: int = 0
    done: int = 0
    lost: int = 0
    duplicated: int = 0
    early: int = 0
    recovered: int = 0


class Lateness(Struct, frozen=True, kw_only=True):
    """From the due time (or the acceptance, whichever is later) to the broker's time of the delivery; percentiles are
    pairs of a percentage and milliseconds, up to 99.99 and 100."""

    percentiles_ms: tuple[tuple[float, int], ...] = ()


class Series(Struct, frozen=True, kw_only=True):
    """One line over time: a value for each step; None where nothing was measured."""

    name: str
    unit: str
    step_ms: int
    values: tuple[float | None, ...]


class Heat(Struct, frozen=True, kw_only=True):
    """Fired tasks by minute and shard: `fired[minute][shard]`, from the minute `first_minute` (minutes since 1970)."""

    first_minute: int
    fired: tuple[tuple[int, ...], ...]


class Band(Struct, frozen=True, kw_only=True):
    """A fault: what was done to what, from when to when."""

    what: str
    whom: str
    from_ms: int
    to_ms: int


class Tenure(Struct, frozen=True, kw_only=True):
    """A shard's owner for a while."""

    shard: int
    member: str
    from_ms: int
    to_ms: int


class Process(Struct, frozen=True, kw_only=True):
    """What one process used: CPU in percent of one core, memory in MiB, step by step."""

    name: str
    step_ms: int
    cpu_percent: tuple[float | None, ...]
    memory_mib: tuple[float | None, ...]


class Report(Struct, frozen=True, kw_only=True):
    """A whole load test. `complete` is False for one that was interrupted: what it says holds for the part that ran.

    `core_s_per_million` is the cost: CPU seconds of our own processes for a million tasks.
    """

    kind: str
    profile: str
    seed: int
    command: str
    version: str
    started_ms: int
    duration_ms: int
    complete: bool
    counts: Counts
    lateness: Lateness
    series: tuple[Series, ...] = ()
    heat: Heat | None = None
    bands: tuple[Band, ...] = ()
    tenures: tuple[Tenure, ...] = ()
    processes: tuple[Process, ...] = ()
    core_s_per_million: float | None = None
    environment: dict[str, str] = {}
    remarks: tuple[str, ...] = ()
