"""Tasks come from producers that are not ours: accepted, as their receipts say, and published on the due topic."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from minutewheel.broker.partitioner import shard_of
from minutewheel.deploy.services import default_folder

pytestmark = pytest.mark.real

NODE_CLIENT = "kafkajs@2.2.4"
NODE_PRODUCER = """
const { Kafka, logLevel } = require("kafkajs")
const [bootstrap, topic, key, value] = process.argv.slice(1)
const producer = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR }).producer()
const run = async () => {
  await producer.connect()
  await producer.send({ topic, acks: -1, messages: [{ key, value }] })
  await producer.disconnect()
}
run().catch((error) => { console.error(error); process.exit(1) })
"""


def line(id_: str, payload: object = None) -> str:
    return json.dumps({"id": id_, "queue": "mail", "delay_ms": 100, "receipt": "me", "payload": payload})


def produced(serving: Any, value: str | bytes, *, partition: int = -1, **options: Any) -> Any:
    """Produced with all defaults of librdkafka; the acknowledged record."""
    acknowledged: list[Any] = []
    producer = Producer({"bootstrap.servers": serving.bootstrap})
    if partition >= 0:
        options["partition"] = partition
    producer.produce(serving.submit, value, on_delivery=lambda *answer: acknowledged.append(answer), **options)
    assert producer.flush(20) == 0
    ((error, record),) = acknowledged
    assert error is None
    return record


def test_the_console_producer(serving: Any) -> None:
    """One line of JSON into Kafka's own tool, as the README does it."""
    tool = [sys.executable, "-m", "minutewheel.deploy.services", "console-producer", serving.submit]
    done = subprocess.run(
        tool, input=line("console", {"n": 1}) + "\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    serving.accepted("default/console")
    assert json.loads(serving.published("default/console").value()) == {"n": 1}


def test_the_node_client(serving: Any, node_client: Path) -> None:
    """It has murmur2: a record with the task's key stands where it is needed."""
    arguments = [serving.bootstrap, serving.submit, "default/node", line("node", [1.5, "ü"])]
    done = subprocess.run(
        ["node", "-e", NODE_PRODUCER, *arguments],
        cwd=node_client,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert serving.accepted("default/node")["origin"] == "-1"
    assert json.loads(serving.published("default/node").value()) == [1.5, "ü"]


@pytest.fixture(scope="session")
def node_client() -> Path:
    """The folder in which the Node client is installed."""
    folder = default_folder() / "node"
    if not (folder / "node_modules" / "kafkajs").is_dir():
        npm = shutil.which("npm")
        if npm is None:
            pytest.fail("the Node client can't be tried: there is no npm (Debian: apt-get install npm)", pytrace=False)
        folder.mkdir(parents=True, exist_ok=True)
        install = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), NODE_CLIENT]
        done = subprocess.run(install, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            pytest.fail(f"npm could not install {NODE_CLIENT}: {done.stderr.strip().splitlines()[-1:]}", pytrace=False)
    return folder


def test_librdkafkas_own_partitioner(serving: Any) -> None:
    """CRC32 is not murmur2: the record comes to another shard's partition, and is forwarded."""
    ids = [f"crc{number}" for number in range(8)]
    records = {id_: produced(serving, line(id_), key=f"default/{id_}") for id_ in ids}
    wrong = [id_ for id_, record in records.items() if record.partition() != shard_of(f"default/{id_}")]
    assert wrong
    for id_ in wrong[:2]:
        assert serving.accepted(f"default/{id_}")["origin"] != "-1"
        assert serving.published(f"default/{id_}").partition() == shard_of(f"default/{id_}")


def test_without_a_key(serving: Any) -> None:
    elsewhere = (shard_of("default/keyless") + 1) % 64
    produced(serving, line("keyless"), partition=elsewhere)
    serving.accepted("default/keyless")
    serving.published("default/keyless")


def test_a_cloud_event_in_binary_mode(serving: Any) -> None:
    """Its value is the payload: any bytes, untouched."""
    headers = {
        "ce_specversion": "1.0",
        "ce_id": "cloud",
        "ce_source": "/shop",
        "ce_type": "org.example.order",
        "content-type": "image/png",
        "mw_queue": "mail",
        "mw_delay_ms": "100",
        "mw_receipt": "me",
    }
    produced(serving, b"\x89PNG\x00\xff", headers=headers)
    serving.accepted("default/cloud")
    record = serving.published("default/cloud")
    assert record.value() == b"\x89PNG\x00\xff"
    assert {("ce_id", b"cloud"), ("content-type", b"image/png")} <= set(record.headers())


def test_many_in_one_record(serving: Any) -> None:
    """The tasks of one record are of several shards."""
    ids = ["batch1", "batch2", "batch3"]
    value = f"[{','.join(map(line, ids))}]"
    produced(serving, value, headers={"content-type": "application/vnd.minutewheel.batch+json"})
    for id_ in ids:
        serving.accepted(f"default/{id_}")
        serving.published(f"default/{id_}")
