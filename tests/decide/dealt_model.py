"""What plain models of dealt topics have in common: keys of one byte, and rules by their digests."""

from __future__ import annotations

from hypothesis import strategies as st

from ferry.decide.records.partitioner import partition_of_record

KEYS = st.lists(st.integers(0, 5), max_size=6)
"""Those of the records of a source partition; 0 is none."""


def selects(digest: str, key: int) -> bool:
    """Whether the rule of that digest keeps a record."""
    return digest == "all" or key % 2 == (digest == "odd")


def number_of(key: int, part: int, offset: int, partitions: int) -> int:
    """The target partition that a record goes to."""
    return partition_of_record(None if key == 0 else bytes([key]), part, offset, partitions)
