"""The partition that Kafka's default partitioner gives to a key; `partition_columns` computes it for many keys at once.

Sources: `Utils.murmur2` and `BuiltInPartitioner.partitionForKey` of Kafka 4.3.0, the same since 0.8.2.
"""

from __future__ import annotations

import struct

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_WORDS = struct.Struct("<I")


def murmur2(data: bytes) -> int:
    """Return the hash of `data` as an unsigned 32-bit number; Java's has the same bits, signed."""
    length = len(data)
    whole = length & ~3
    found = _SEED ^ length
    for (word,) in _WORDS.iter_unpack(data[:whole]):
        mixed = word * _FACTOR & _MASK
        mixed ^= mixed >> 24
        found = (found * _FACTOR ^ mixed * _FACTOR) & _MASK
    if length != whole:
        found = (found ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    found ^= found >> 13
    found = found * _FACTOR & _MASK
    return found ^ found >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Return the partition, of `partitions`, that Kafka's default partitioner gives to a key.

    An empty key counts as one.
    """
    return (murmur2(key) & _POSITIVE) % partitions
