"""In which order are the services asked, and what if one does not answer?

Cassandra first, for Kafka is judged by what stands there: the queues, and the shards' places in the logs. A service
that does not answer within its time is a finding, and the others are asked all the same.
"""

import asyncio
from collections.abc import Awaitable
from importlib.metadata import PackageNotFoundError, version
from typing import TypeVar

from ..broker.errors import BrokerError
from ..coordinator import CoordinatorError
from ..dispatcher.clock import SystemClock
from ..settings import Settings
from ..store.errors import StoreError
from .finding import Finding
from .versions import DRIVERS, driver_findings

T = TypeVar("T")

PATIENCE_S = 60.0
NO_ANSWER = (BrokerError, StoreError, CoordinatorError, OSError, TimeoutError)
"""`OSError` has those of TLS, and of certificate files that can't be read."""


async def examine(settings: Settings, clock: SystemClock | None = None) -> list[Finding]:
    """All that is wrong with the fleet of these settings; an empty list is well."""
    found = driver_findings(_installed())
    if found:
        return found  # without them nothing can be asked
    from .cassandra import cassandra_findings
    from .kafka import Kept, kafka_findings
    from .zookeeper import zookeeper_findings

    clock = clock or SystemClock()
    kept = await _asked("cassandra", cassandra_findings(settings, clock, found), found) or Kept()
    await _asked("kafka", kafka_findings(settings, clock, kept, found), found)
    await _asked("zookeeper", zookeeper_findings(settings, clock, found), found)
    return found


async def _asked(service: str, asking: Awaitable[T], found: list[Finding]) -> T | None:
    """None if it does not answer, which is put into `found`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await asking
    except NO_ANSWER as error:
        why = str(error) or f"nothing within {PATIENCE_S:.0f} s"
        do = f"does it run? do its addresses, certificates and names in [{service}] hold? its own log may say more"
        found.append(Finding(service, "no_answer", why, do))
        return None


def _installed() -> dict[str, str]:
    found = {}
    for name in DRIVERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
