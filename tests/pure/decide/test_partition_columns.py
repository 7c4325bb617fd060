"""Partitions of many records are those of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.records.rules import partition_columns
from ferry.features.records.rules.partition_columns import murmur2_of, partitions_of_records
from ferry.wire.partitioner import murmur2
from tests.pure.decide.dealt_model import partition_of_record

KEYS = st.none() | st.binary(max_size=70)
RECORDS = st.lists(st.tuples(KEYS, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=40)


def laid(keys: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The keys behind each other, with something between."""
    data = b"".join(b"--" + key for key in keys) + b"-"
    lengths = np.array([len(key) for key in keys], np.int64)
    starts = np.cumsum(lengths + 2) - lengths
    return np.frombuffer(data, np.uint8), starts, lengths


@given(records=RECORDS, count=st.integers(1, 2**31 - 1))
def test_they_are_the_same(records: list[tuple[bytes | None, int, int]], count: int) -> None:
    valid = np.array([key is not None for key, _, _ in records], np.bool_)
    places = np.array([row[1] for row in records], np.int32), np.array([row[2] for row in records], np.int64)
    found = partitions_of_records(*laid([key or b"" for key, _, _ in records]), valid, places, count)
    assert found.tolist() == [partition_of_record(*row, count) for row in records]


def test_every_length_and_every_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_columns, "AT_ONCE", 600)
    keys = [bytes(range(256))[:length] for length in range(257)] + [bytes([byte]) * 3 for byte in range(256)]
    assert murmur2_of(*laid(keys)).tolist() == [murmur2(key) for key in keys]
