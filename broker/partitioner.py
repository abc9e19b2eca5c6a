"""Which shard does a key belong to?

The one that Kafka's own default partitioner picks among 64 partitions: 32-bit murmur2 with Kafka's seed, the sign
bit cleared, modulo 64. So a Java producer that keys its records by `<tenant>/<id>` hits the right partition without
knowing of shards. It is written out here because a shard must never depend on the process (`hash()` is salted), on
a library's version or on a driver that only a fleet needs. `docs/partition-vectors.json` pins it.

After `murmur2` of org.apache.kafka.common.utils.Utils (Apache Kafka), itself after Austin Appleby's MurmurHash2.
"""

from struct import unpack_from

from ..store.task import SHARDS

SEED = 0x9747B28C
MIX = 0x5BD1E995
MASK = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Kafka's murmur2 as an unsigned 32-bit number (Java prints the same bits with a sign)."""
    length = len(key)
    hashed = SEED ^ length
    for word in unpack_from(f"<{length >> 2}I", key):
        word = word * MIX & MASK  # noqa: PLW2901 - the hot loop of the hash
        hashed = (hashed * MIX ^ (word ^ word >> 24) * MIX) & MASK
    if length & 3:
        hashed = (hashed ^ int.from_bytes(key[length & ~3 :], "little")) * MIX & MASK
    hashed = (hashed ^ hashed >> 13) * MIX & MASK
    return hashed ^ hashed >> 15


def shard_of(key: str | bytes) -> int:
    """The shard, 0 … 63, of a task's key `<tenant>/<id>` (text counts as its UTF-8)."""
    return (murmur2(key.encode() if isinstance(key, str) else key) & 0x7FFFFFFF) % SHARDS
