"""Which settings are there, what may they be, and where did each value come from?

One frozen tree, read once at the start. Every key has one name, written in three ways:

    on the command line    --set dispatcher.lead_ms=20000
    in the environment     MINUTEWHEEL_DISPATCHER__LEAD_MS=20000
    in minutewheel.toml    [dispatcher] lead_ms = 20000

and that is also the order in which they count; what none of them says is the default. A key that does not exist is an
error that names the nearest one that does. So is a set of values that can't work together: it shows at the start,
not at nine o'clock. Values are never repeated in messages, for they may be secrets.

The tree knows nothing of the rest of the package: `wiring` turns it into the limits that the parts take.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic import model_validator as validates
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

PREFIX = "MINUTEWHEEL_"
FILE = "minutewheel.toml"
FILE_VARIABLE = f"{PREFIX}CONFIG"
DEFAULT = "default"
DAY_MS = 86_400_000
QUEUE = re.compile(r"[A-Za-z0-9._-]{1,64}")
SERVICE_LINK = re.compile(r"(_SERVICE)?_(HOST|PORT)(_|$)")
"""What Kubernetes puts into the environment for a service of our name: not meant for us."""

Count = Annotated[int, Field(ge=1)]
Milliseconds = Annotated[int, Field(ge=1, le=400 * 366 * DAY_MS)]


class SettingsError(ValueError):
    """The settings can't be used; the message has one line for each thing that is wrong."""


def _in_order(section: BaseModel, *names: str, strict: bool = False) -> None:
    """Each of these must be at most the next (strict: below it)."""
    for low, high in pairwise(names):
        a, b = getattr(section, low), getattr(section, high)
        if a > b or (strict and a == b):
            raise ValueError(f"{low} must be {'below' if strict else 'at most'} {high}")


class Section(BaseModel):
    """A part of the tree."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Logging(Section):
    """What the program says of its own work, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="the least that is logged")
    format: Literal["auto", "text", "json"] = Field(default="auto", description="auto: text on a terminal, else JSON")


class TopicNames(Section):
    """The topics of this installation."""

    prefix: str = Field(default="minutewheel", pattern=r"^[A-Za-z0-9._-]{1,100}$", description="how they begin")


class Door(Section):
    """Bounds of a submission. What is larger is refused, with a code; bytes count UTF-8."""

    payload_bytes: int = Field(default=65_536, ge=0, description="the payload")
    id_bytes: int = Field(default=256, ge=1, le=32_000, description="a task's id")
    receipt_bytes: int = Field(default=256, ge=1, description="what a submitter wants receipts to be marked with")
    headers: int = Field(default=64, ge=0, description="how many headers")
    header_name_bytes: Count = Field(default=128, description="a header's name")
    header_bytes: int = Field(default=8_192, ge=0, description="names and values of all headers together")
    nesting: int = Field(default=64, ge=1, le=200, description="depth of a JSON payload")
    batch_items: int = Field(default=16_384, ge=1, le=16_384, description="tasks in one batch record")
    attempts: int = Field(default=100, ge=1, le=32_767, description="the highest `max_attempts`")
    timeout_ms: Milliseconds = Field(default=30 * DAY_MS, description="the longest timeout of a handler")
    retry_ms: Milliseconds = Field(default=30 * DAY_MS, description="the longest delay between two attempts")
    retry_factor: float = Field(default=100.0, ge=1.0, allow_inf_nan=False, description="the highest factor of delays")

    @validates(mode="after")
    def _headers_fit_a_record(self) -> Self:
        if self.header_bytes + 16 * self.headers >= 1 << 16:
            raise ValueError("header_bytes + 16 x headers must be below 65536: a record counts them in 16 bits")
        return self


class Dispatching(Section):
    """How the owner of a shard works."""

    lead_ms: Milliseconds = Field(default=30_000, description="how long before its due time a task is loaded")
    checkpoint_ms: Milliseconds = Field(default=250, description="pause between two records of progress")
    checkpoint_ms_max: Milliseconds = Field(default=2_000, description="the same when the store is slow")
    unrecorded_max: Count = Field(default=200_000, description="fired and unrecorded tasks at which firing stops")
    unrecorded_ms_max: Milliseconds = Field(default=30_000, description="time without a record at which it stops")
    batch_max: Count = Field(default=2_000, description="commands applied at once")
    read_ahead: Count = Field(default=20_000, description="records read ahead; the nearest due goes first")
    page_rows: Count = Field(default=5_000, description="rows loaded from the store at once")
    piece_rows_max: Count = Field(default=200_000, description="rows after which a bucket gets another piece")
    piece_bytes_max: Count = Field(default=64 << 20, description="bytes after which it is")
    close_after_ms: Milliseconds = Field(default=2_000, description="from a minute's end to its close, at least")
    close_look_ms: Milliseconds = Field(default=500, description="pause between two looks for minutes to close")
    closes_max: Count = Field(default=60, description="minutes closed by one look")
    session_ms: int = Field(default=10_000, ge=1_000, description="silence that costs a dispatcher its shards")

    @validates(mode="after")
    def _fits_together(self) -> Self:
        _in_order(self, "checkpoint_ms", "checkpoint_ms_max", "unrecorded_ms_max")
        _in_order(self, "batch_max", "read_ahead")
        return self


class Memory(Section):
    """What waiting tasks may take in one dispatcher; beyond it the rest of a minute stays in the store for longer."""

    tasks_max: Count = Field(default=2_000_000, description="tasks")
    bytes_max: Count = Field(default=1 << 30, description="bytes of their records")


class Working(Section):
    """How much a worker process takes on."""

    concurrency: Count = Field(default=1_000, description="tasks taken and not finished")
    threads: Count = Field(default=32, description="plain (not async) handlers running at a time")
    parked: Count = Field(default=10_000, description="deliveries waiting for others, at which it takes no more")
    uncommitted: Count = Field(default=100_000, description="uncommitted offsets at which it takes no more")
    hold_ms: Milliseconds = Field(default=30_000, description="how long a started task is held without a sign of life")
    renew_ms: Milliseconds = Field(default=10_000, description="pause between two signs of life")
    poll_ms: Milliseconds = Field(default=1_000, description="how long a poll waits")
    commit_ms: Milliseconds = Field(default=200, description="pause between two commits")
    grace_ms: int = Field(default=20_000, ge=0, description="what running handlers get to end at a stop")
    flush_ms: int = Field(default=5_000, ge=0, description="what finished ones get then to be reported")

    @validates(mode="after")
    def _a_hold_outlasts_a_failed_renewal(self) -> Self:
        if self.renew_ms * 2 > self.hold_ms:
            raise ValueError("renew_ms must be at most half of hold_ms: a hold outlasts one renewal that fails")
        return self


class Messaging(Section):
    """What the broker takes."""

    max_message_bytes: int = Field(default=1_000_000, ge=600_000, description="the largest record (batches: 500,000)")
    session_ms: int = Field(default=10_000, ge=1_000, description="silence that costs a worker its partitions")


class Retention(Section):
    """How long what is over is kept."""

    tasks_ms: Milliseconds = Field(default=7 * DAY_MS, description="ended tasks: how long a repeated id is known")
    due_ms: Milliseconds = Field(default=7 * DAY_MS, description="records of the topics")
    ledger_ms: Milliseconds = Field(default=14 * DAY_MS, description="which tasks have run")
    worker_outage_ms: Milliseconds = Field(default=3 * DAY_MS, description="the worker outage that is promised")

    @validates(mode="after")
    def _fits_together(self) -> Self:
        _in_order(self, "worker_outage_ms", "due_ms", "ledger_ms", strict=True)
        return self


class Settings(BaseSettings):
    """The tree. Made by `load`; made directly, only what it is given counts."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        validate_default=False,
    )

    mode: Literal["embedded", "real"] = Field(
        default="embedded",
        description="embedded: all in one process and one folder; real: Cassandra, Kafka and ZooKeeper",
    )
    data: Path = Field(default=Path(".minutewheel"), description="the data folder of embedded mode")
    durability: Literal["power", "kill"] = Field(
        default="power",
        description="what an acknowledged write survives: the loss of power, or only the death of the process",
    )
    queues: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="queues declared at the start, separated by commas (a list in the file)"
    )
    declare_queues: bool = Field(
        default=True, description="tasks may name any queue: dispatchers declare what they meet"
    )
    log: Logging = Logging()
    topics: TopicNames = TopicNames()
    limits: Door = Door()
    dispatcher: Dispatching = Dispatching()
    memory: Memory = Memory()
    worker: Working = Working()
    broker: Messaging = Messaging()
    retention: Retention = Retention()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """`load` reads the sources one by one, so that it can tell where a value came from."""
        return (init_settings,)

    @field_validator("mode")
    @classmethod
    def _mode_is_there(cls, mode: str) -> str:
        if mode == "real":
            raise ValueError("this release has no real services yet: leave it at embedded")
        return mode

    @field_validator("queues", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("queues")
    @classmethod
    def _queues_are_names(cls, queues: tuple[str, ...]) -> tuple[str, ...]:
        if not all(QUEUE.fullmatch(name) for name in queues):
            raise ValueError("a queue is 1 to 64 of A-Z a-z 0-9 . _ -")
        return queues

    @validates(mode="after")
    def _fits_together(self) -> Self:
        room = self.broker.max_message_bytes - self.limits.header_bytes - 4 * self.limits.id_bytes - 8_192
        if self.limits.payload_bytes > room:
            raise ValueError(
                "limits.payload_bytes with all its headers must fit into broker.max_message_bytes: "
                f"at most {room} with these settings"
            )
        if self.retention.tasks_ms < self.retention.worker_outage_ms:
            raise ValueError("retention.tasks_ms must be at least retention.worker_outage_ms")
        return self


class Loaded(Section):
    """The settings, and for each dotted key the source that its value came from."""

    settings: Settings
    origins: Mapping[str, str]


def load(flags: Mapping[str, object] | None = None, file: Path | None = None) -> Loaded:
    """Read all sources. `flags` are by dotted key; without `file` it is the one that MINUTEWHEEL_CONFIG names, or
    `minutewheel.toml` in the working folder if there is one. Raise `SettingsError`."""
    path = _file(file)
    sources = {"flag": dict(flags or {}), "environment": _environment()}
    if path is not None:
        sources[str(path)] = _toml(path)
    problems = [problem for source, given in sources.items() for problem in _unknown(source, given)]
    if problems:
        raise SettingsError("\n".join(problems))
    origins = {key: next((source for source, given in sources.items() if key in given), DEFAULT) for key in keys()}
    merged = {key: sources[source][key] for key, source in origins.items() if source != DEFAULT}
    try:
        return Loaded(settings=Settings(**_nested(merged)), origins=origins)
    except ValidationError as error:
        raise SettingsError("\n".join(_explained(error, origins))) from None


def leaves(tree: type[BaseModel] = Settings, above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """All dotted keys and what is declared of them, in the order of the tree."""
    for name, field in tree.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, f"{above}{name}.")
        else:
            yield f"{above}{name}", field


def keys() -> list[str]:
    return [key for key, _ in leaves()]


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.replace(".", "__").upper()


def shown(tree: BaseModel) -> dict[str, object]:
    """Each key's value as it may be shown: as plain as JSON, and secrets as stars."""
    found: dict[str, object] = {}
    for name in type(tree).model_fields:
        value = getattr(tree, name)
        if isinstance(value, BaseModel):
            found.update({f"{name}.{key}": inner for key, inner in shown(value).items()})
        elif isinstance(value, SecretStr | Path):
            found[name] = str(value)
        else:
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


# Sources, each by dotted key.


def _file(given: Path | None) -> Path | None:
    named = given or (Path(os.environ[FILE_VARIABLE]) if os.environ.get(FILE_VARIABLE) else None)
    if named is None:
        return Path(FILE) if Path(FILE).is_file() else None
    if not named.is_file():
        raise SettingsError(f"there is no settings file {named}")
    return named


def _toml(path: Path) -> dict[str, object]:
    try:
        return dict(_flat(TomlConfigSettingsSource(Settings, path)()))
    except (TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path}: {error}") from None


def _environment() -> dict[str, object]:
    """The variables with our prefix; a misspelt one too, to be reported."""
    given = dict(_flat(EnvSettingsSource(Settings)()))
    ignored = {FILE_VARIABLE, *map(variable, keys())}
    for name in map(str.upper, os.environ):
        if name.startswith(PREFIX) and name not in ignored and not SERVICE_LINK.search(name):
            given[name.removeprefix(PREFIX).lower().replace("__", ".")] = None
    return given


def _flat(tree: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *above, name = key.split(".")
        inner = tree
        for part in above:
            inner = inner.setdefault(part, {})
        inner[name] = value
    return tree


# Complaints.


def _unknown(source: str, given: Iterable[str]) -> Iterator[str]:
    """A line for each key that there is none of, or that is a section."""
    known = keys()
    write = variable if source == "environment" else str
    for key in given:
        if key in known:
            continue
        if any(name.startswith(f"{key}.") for name in known):
            yield f"{write(key)} ({source}) is a section, not a value"
            continue
        near = get_close_matches(key, known, 1, 0.5)
        hint = f"; did you mean {write(near[0])}?" if near else ""
        yield f"{write(key)} ({source}) is no setting{hint}"


def _explained(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    """A line for each error, without the value."""
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        key = ".".join(part for part in one["loc"] if isinstance(part, str))
        place = f"{key} ({origins[key]}): " if key in origins else f"{key}: " if key else ""
        yield place + one["msg"].removeprefix("Value error, ")
