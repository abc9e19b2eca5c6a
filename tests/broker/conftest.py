"""A corner of the real Kafka for one test: names of its own, clients that end with it, and no topic left behind."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from minutewheel.broker.kafka import KafkaBroker
from minutewheel.broker.kafka_admin import Admin
from minutewheel.broker.kafka_client import Connection


class Corner:
    """Every topic of its own begins with `prefix`."""

    def __init__(self, servers: str) -> None:
        self.connection = Connection(servers)
        self.prefix = f"corner-{secrets.token_hex(4)}"
        # A cluster that has much to do takes its time to take topics away.
        self.admin = Admin(Connection(servers, answer_ms=60_000))
        self._brokers: list[KafkaBroker] = []
        self._made = 0

    async def open(self, **options: Any) -> KafkaBroker:
        broker = await KafkaBroker.open(self.connection, self.prefix, **options)
        self._brokers.append(broker)
        return broker

    async def topic(self, broker: KafkaBroker, partitions: int = 1) -> str:
        self._made += 1
        name = f"{self.prefix}.t{self._made}"
        await broker.create_topics({name: partitions})
        return name

    async def close(self) -> None:
        for broker in self._brokers:
            await broker.close()
        ours = [name for name in await self.admin.topics() if name.startswith(self.prefix)]
        await asyncio.gather(*map(self.admin.delete, ours))


@pytest.fixture
async def corner(services: Any) -> AsyncIterator[Corner]:
    made = Corner(services.kafka)
    yield made
    await made.close()
