"""What can be set in each part of an installation, and which values exclude each other?

One class a part; `tree` puts them together.
"""

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic import model_validator as validates

DAY_MS = 86_400_000

Count = Annotated[int, Field(ge=1)]
Milliseconds = Annotated[int, Field(ge=1, le=400 * 366 * DAY_MS)]


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
    checkpoint_ms: Milliseconds = Field(default=250, description="pause between records of progress waited for")
    checkpoint_relaxed_ms: Milliseconds = Field(default=1_000, description="the same when nothing waits for one")
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
        _in_order(self, "checkpoint_ms", "checkpoint_relaxed_ms", "checkpoint_ms_max", "unrecorded_ms_max")
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
