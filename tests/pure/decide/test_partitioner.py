"""Partitions of records by key, against Kafka's own partitioner, and of records without one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.partitioner import partition_of_key
from tests.pure.decide.dealt_model import partition_of_record

KEYS = st.binary(max_size=70)


@given(key=KEYS, partition=st.integers(0, 1000), offset=st.integers(0, 2**63 - 1), count=st.integers(1, 1000))
def test_a_key_decides_alone(key: bytes, partition: int, offset: int, count: int) -> None:
    assert partition_of_record(key, partition, offset, count) == partition_of_key(key, count)


@given(source=st.integers(0, 1000), start=st.integers(0, 2**62), count=st.integers(1, 50), rounds=st.integers(1, 4))
def test_records_without_a_key_go_in_turn_and_to_the_same_place_again(
    source: int, start: int, count: int, rounds: int
) -> None:
    offsets = range(start, start + count * rounds)
    found = [partition_of_record(None, source, offset, count) for offset in offsets]
    assert Counter(found) == dict.fromkeys(range(count), rounds)
    assert all((after - before) % count == 1 % count for before, after in pairwise(found))


def test_an_empty_key_is_a_key() -> None:
    assert {partition_of_record(b"", 0, offset, 12) for offset in range(24)} == {partition_of_key(b"", 12)}
