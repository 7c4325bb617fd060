"""Which partitions of a target records go to: by their keys as with Kafka's default partitioner, or in turn. Pure.

A producer sends records without a key to any partition. Here their source partition and offset decide, so that a retry
sends them to the same place. Source partitions begin at different target partitions, so that the first records of all
of them do not go to the same one.

Keys of one length are hashed together, word by word, by numpy. Only installations with Spark have numpy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.int64]

_SEED = 0x9747B28C
_FACTOR = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)
AT_ONCE = 1 << 20
"""So many bytes of keys are put into one array."""


def murmur2_of(data: npt.NDArray[np.uint8], starts: Longs, lengths: Longs) -> Words:
    """Return the hashes of the keys that begin at `starts` of `data`, the same as `murmur2` of each."""
    found = np.empty(len(starts), np.uint32)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        step = max(1, AT_ONCE // max(1, length))
        for at in range(0, len(rows), step):
            some = rows[at : at + step]
            found[some] = _hashed(data[starts[some][:, None] + np.arange(length)], length)
    return found


def _hashed(keys: npt.NDArray[np.uint8], length: int) -> Words:
    """Hash keys of one length, one key in each row."""
    whole = length & ~3
    words = np.ascontiguousarray(keys[:, :whole]).view("<u4")
    found = np.full(len(keys), _SEED ^ (length & 0xFFFFFFFF), np.uint32)
    for at in range(whole // 4):
        mixed = words[:, at] * _FACTOR
        mixed ^= mixed >> np.uint32(24)
        found = found * _FACTOR ^ mixed * _FACTOR
    if length != whole:
        rest = np.zeros(len(keys), np.uint32)
        for at in range(whole, length):
            rest |= keys[:, at].astype(np.uint32) << np.uint32(8 * (at - whole))
        found = (found ^ rest) * _FACTOR
    found ^= found >> np.uint32(13)
    found *= _FACTOR
    return found ^ found >> np.uint32(15)


def partitions_of_records(
    data: npt.NDArray[np.uint8],
    starts: Longs,
    lengths: Longs,
    valid: npt.NDArray[np.bool_],
    places: tuple[npt.NDArray[np.int32], Longs],
    count: int,
) -> Longs:
    """Return the partition of each record, of `count`, the same as `partition_of_record` of each.

    `data`, `starts` and `lengths` are the keys, where they are `valid`; the other keys are null. `places` are source
    partitions and offsets.
    """
    partitions, offsets = places
    found = (partitions % count + offsets % count) % count
    if valid.any():
        hashes = murmur2_of(data, starts[valid], lengths[valid])
        found[valid] = (hashes & _POSITIVE).astype(np.int64) % count
    return found
