"""A fleet with one dispatcher process, the queue `mail` declared; and a reader of its receipts and due records."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

COMMAND = [sys.executable, "-c", "from minutewheel.console.cli import main; main()"]
PATIENCE_S = 30.0


@dataclass
class Serving:
    """Where to submit, and what came of it."""

    bootstrap: str
    submit: str
    due: str
    receipts: str

    def first(self, topic: str, wanted: Callable[[Any], bool]) -> Any:
        """The first record of a topic that is wanted, waited for."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "looking", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(64)])
        until = time.monotonic() + PATIENCE_S
        try:
            while time.monotonic() < until:
                record = consumer.poll(1.0)
                if record is not None and record.error() is None and wanted(record):
                    return record
        finally:
            consumer.close()
        pytest.fail(f"what was waited for did not come to {topic} within {PATIENCE_S:.0f} s")

    def accepted(self, key: str) -> Any:
        """The receipt that says so."""
        record = self.first(self.receipts, lambda record: record.key() == key.encode())
        receipt = json.loads(record.value())
        assert receipt["answer"] == "accepted", receipt
        return receipt

    def published(self, key: str) -> Any:
        """The record on the due topic."""
        return self.first(self.due, lambda record: record.key() == key.encode())


@pytest.fixture(scope="module")
def serving(fleet: Any) -> Iterator[Serving]:
    config = ["--config", str(fleet.config), "--json"]
    subprocess.run([*COMMAND, "queue", "put", "mail", *config], check=True, timeout=60, capture_output=True)
    with (
        (Path(fleet.config).parent / "dispatcher.log").open("w") as log,
        subprocess.Popen([*COMMAND, "dispatcher", *config], stdout=subprocess.PIPE, stderr=log) as process,
    ):
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["serving"]
            name = fleet.name
            yield Serving(fleet.kafka, f"{name}.submit", f"{name}.due.mail", f"{name}.receipts")
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait(30)
