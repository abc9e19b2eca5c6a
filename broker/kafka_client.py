"""How is a client of Kafka's made: which servers, with what security, and where do its log lines go?

Every client (producer, consumers, admin) is made from one `Connection`. The security options go to librdkafka as they
are (`security.protocol`, `sasl.*`, `ssl.*`); their values stand in no text of ours.
"""

import logging
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .errors import BrokerError
from .kafka_log import Repeats

log = logging.getLogger("minutewheel.kafka")
log.addFilter(Repeats())

RECONNECT_MAX_MS = 1_000
"""A broker that comes back is found within a second."""

SECURITY = ("security.protocol", "sasl.", "ssl.", "enable.ssl.", "https.", "oauthbearer_")
"""What may stand in the security options; anything else would change what the twin promises."""


class Connection(Struct, frozen=True):
    """Where the brokers are, and how one is let in. `answer_ms` bounds the wait for any answer to a question."""

    servers: str
    security: Mapping[str, str] = {}
    client: str = "minutewheel"
    answer_ms: int = 10_000

    def __post_init__(self) -> None:
        """Check the names of the security options."""
        if unknown := sorted(name for name in self.security if not name.startswith(SECURITY)):
            raise ValueError(f"no security options of librdkafka: {', '.join(unknown)}")

    def __repr__(self) -> str:
        """Name the security options and show none of their values."""
        return f"Connection({self.servers!r}, security={sorted(self.security)}, client={self.client!r})"

    def options(self, **options: Any) -> dict[str, Any]:
        """All options of a client; those given here are spelt with _ for the dots."""
        return {
            "bootstrap.servers": self.servers,
            "client.id": self.client,
            "reconnect.backoff.max.ms": RECONNECT_MAX_MS,
            "log.connection.close": False,
            "logger": log,
            **self.security,
            **{name.replace("_", "."): value for name, value in options.items()},
        }


def made(kind: Any, options: Mapping[str, Any]) -> Any:
    """A client of this kind. `BrokerError` if librdkafka refuses the options."""
    from confluent_kafka import KafkaException

    try:
        return kind(dict(options))
    except (KafkaException, ValueError, TypeError) as error:
        raise BrokerError(f"no client of Kafka can be made: {error}") from error
