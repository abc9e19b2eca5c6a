"""The shard of a key is pinned: published vectors, Kafka's own unit tests, any process, any hash seed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from minutewheel.broker.partitioner import murmur2, shard_of

pytestmark = pytest.mark.pure

VECTORS = json.loads((Path(__file__).parents[2] / "docs" / "partition-vectors.json").read_text(encoding="utf-8"))
# Published in Apache Kafka's UtilsTest.testMurmur2, as Java's signed integers.
KAFKA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["utf8"][:24])
def test_the_published_vectors_hold(vector: dict[str, object]) -> None:
    key = str(vector["key"])
    assert key.encode().hex() == vector["utf8"]
    assert murmur2(key.encode()) == vector["murmur2"]
    assert shard_of(key) == shard_of(key.encode()) == vector["shard"]


def test_vectors_cover_the_corners() -> None:
    keys = [vector["key"] for vector in VECTORS]
    assert "" in keys
    assert any(not key.isascii() for key in keys)
    assert {len(key.encode()) % 4 for key in keys} == {0, 1, 2, 3}


@pytest.mark.parametrize(("key", "signed"), KAFKA.items())
def test_kafka_says_the_same(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


def test_six_fresh_interpreters_agree() -> None:
    code = "from minutewheel.broker.partitioner import shard_of; print(shard_of('tenant-a/task-1'))"
    shards = set()
    for seed in ("0", "1", "2", "77", "4294967295", "random"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        shards.add(int(done.stdout))
    assert shards == {shard_of("tenant-a/task-1")}
    assert shards == {vector["shard"] for vector in VECTORS if vector["key"] == "tenant-a/task-1"}


def by_the_book(key: bytes) -> int:
    """MurmurHash2 as its definition reads, byte for byte."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    hashed = 0x9747B28C ^ len(key)
    at = 0
    while len(key) - at >= 4:
        word = key[at] | key[at + 1] << 8 | key[at + 2] << 16 | key[at + 3] << 24
        word = word * mix & mask
        word ^= word >> 24
        word = word * mix & mask
        hashed = hashed * mix & mask
        hashed ^= word
        at += 4
    rest = len(key) - at
    if rest == 3:
        hashed ^= key[at + 2] << 16
    if rest >= 2:
        hashed ^= key[at + 1] << 8
    if rest >= 1:
        hashed ^= key[at]
        hashed = hashed * mix & mask
    hashed ^= hashed >> 13
    hashed = hashed * mix & mask
    return hashed ^ hashed >> 15


@given(st.binary(max_size=300))
def test_it_is_the_hash_by_the_book(key: bytes) -> None:
    assert murmur2(key) == by_the_book(key)
    assert 0 <= shard_of(key) < 64
