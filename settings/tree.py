"""What does the whole tree of settings look like, and which parts of it must fit together?"""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator
from pydantic import model_validator as validates
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from .sections import (
    Dispatching,
    Door,
    Logging,
    Memory,
    Messaging,
    Retention,
    TopicNames,
    Working,
)
from .services import Cassandra, Kafka, Zookeeper, split

PREFIX = "MINUTEWHEEL_"
QUEUE = re.compile(r"[A-Za-z0-9._-]{1,64}")


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
    cassandra: Cassandra = Cassandra()
    kafka: Kafka = Kafka()
    zookeeper: Zookeeper = Zookeeper()

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

    _split_queues = field_validator("queues", mode="before")(split)

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

    @validates(mode="after")
    def _a_fleet_has_addresses(self) -> Self:
        if self.mode == "embedded":
            return self
        needed = {
            "cassandra.hosts": self.cassandra.hosts,
            "kafka.bootstrap": self.kafka.bootstrap,
            "zookeeper.hosts": self.zookeeper.hosts,
        }
        missing = [key for key, addresses in needed.items() if not addresses]
        if missing:
            raise ValueError(f"mode is real: {', '.join(missing)} must be given")
        # Trust ends at 0.6 of the session (see coordinator.lease): what is still queued then must be given up before
        # another owner can begin.
        if self.kafka.message_timeout_ms >= self.dispatcher.session_ms * 2 // 5:
            raise ValueError("kafka.message_timeout_ms must be below 0.4 x dispatcher.session_ms")
        return self
