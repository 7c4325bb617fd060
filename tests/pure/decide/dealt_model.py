"""What plain models of dealt topics have in common: keys of one byte, and rules by their digests."""

from __future__ import annotations

from hypothesis import strategies as st

from ferry.model import Slice
from ferry.wire.partitioner import partition_of_key

KEYS = st.lists(st.integers(0, 5), max_size=6)
"""Those of the records of a source partition; 0 is none."""


def selects(digest: str, key: int) -> bool:
    """Whether the rule of that digest keeps a record."""
    return digest == "all" or key % 2 == (digest == "odd")


def wants(unit: Slice, partition: int, offset: int) -> bool:
    """Whether a unit wants a record of the source, if it is dealt to it at all; not of partitions that are newer."""
    return partition < len(unit.starts) and unit.starts[partition] <= offset < unit.ends[partition]


def partition_of_record(key: bytes | None, source_partition: int, source_offset: int, partitions: int) -> int:
    """The partition, of so many, that a record goes to: by its key; one without by its offset, in turn."""
    if key is None:
        return (source_partition + source_offset) % partitions
    return partition_of_key(key, partitions)


def number_of(key: int, part: int, offset: int, partitions: int) -> int:
    """The target partition that a record goes to."""
    return partition_of_record(None if key == 0 else bytes([key]), part, offset, partitions)
