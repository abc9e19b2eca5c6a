"""How are Cassandra, Kafka and ZooKeeper reached?

Each in the clear only where its section says `security = "plaintext"` in so many words.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, field_validator
from pydantic import model_validator as validates
from pydantic_settings import NoDecode

from .sections import Milliseconds, Section

ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")

Security = Literal["tls", "plaintext"]
SECURITY = "tls, unless it says plaintext in so many words: then all is sent in the clear, passwords too"


class Secured(Section):
    """How one of the services is reached."""

    security: Security = Field(default="tls", description=SECURITY)
    ca_file: Path | None = Field(default=None, description="whom to trust (PEM); without it, whom the system trusts")
    cert_file: Path | None = Field(default=None, description="our certificate (PEM), where the service asks for one")
    key_file: Path | None = Field(default=None, description="its key (PEM)")
    username: str = Field(default="", description="who we are, where the service asks for it")
    password: SecretStr = Field(default=SecretStr(""), description="its password")

    @validates(mode="after")
    def _certificates_need_tls(self) -> Self:
        files = (self.ca_file, self.cert_file, self.key_file)
        if self.security == "plaintext" and any(files):
            raise ValueError("security is plaintext: ca_file, cert_file and key_file would not be used")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together")
        if bool(self.username) != bool(self.password.get_secret_value()):
            raise ValueError("username and password go together")
        return self


Addresses = Annotated[tuple[str, ...], NoDecode]


def _addresses(service: str) -> Any:
    return Field(default=(), description=f"{service}: host:port, several separated by commas (a list in the file)")


def split(value: object) -> object:
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _are_addresses(values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(ADDRESS.fullmatch(value) for value in values):
        raise ValueError("an address is host:port")
    return values


class Cassandra(Secured):
    """The store of a fleet."""

    hosts: Addresses = _addresses("contact points")
    datacenter: str = Field(default="", description="the one to talk to; empty: that of the first contact point")
    keyspace: str = Field(default="minutewheel", pattern=r"^[a-z][a-z0-9_]{0,47}$", description="where the tables are")
    replication: int = Field(default=3, ge=1, le=9, description="copies of each row, for `setup`")
    timeout_ms: Milliseconds = Field(default=5_000, description="how long a statement may take")

    _split_hosts = field_validator("hosts", mode="before")(split)
    _check_hosts = field_validator("hosts")(_are_addresses)

    @validates(mode="after")
    def _one_port(self) -> Self:
        if len({address.rpartition(":")[2] for address in self.hosts}) > 1:
            raise ValueError("all hosts of a Cassandra cluster listen on the same port")
        return self


class Kafka(Secured):
    """The broker of a fleet."""

    bootstrap: Addresses = _addresses("bootstrap servers")
    sasl: Literal["none", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="none", description="how username and password are shown"
    )
    replication: int = Field(default=3, ge=1, le=9, description="copies of each topic, for `setup`")
    message_timeout_ms: Milliseconds = Field(
        default=3_000,
        description="how long a record may wait to be sent; less than a lease lasts after trust in it ends",
    )

    _split_bootstrap = field_validator("bootstrap", mode="before")(split)
    _check_bootstrap = field_validator("bootstrap")(_are_addresses)

    @validates(mode="after")
    def _a_name_needs_a_way_to_show_it(self) -> Self:
        if (self.sasl == "none") != (self.username == ""):
            raise ValueError("sasl and username go together")
        return self


class Zookeeper(Secured):
    """The coordinator of a fleet."""

    hosts: Addresses = _addresses("servers")
    chroot: str = Field(default="/minutewheel", pattern=r"^(/[A-Za-z0-9._-]{1,100}){1,8}$", description="our folder")

    _split_hosts = field_validator("hosts", mode="before")(split)
    _check_hosts = field_validator("hosts")(_are_addresses)
