"""Partitions of records by key, against Kafka's own partitioner, and of records without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.decide.records.partitioner import murmur2, partition_of_key
from ferry.dev.jars import jars, java
from tests.decide.dealt_model import partition_of_record
from tests.oracle import Oracle

SOURCE = Path(__file__).with_name("PartitionerOracle.java")

KEYS = st.binary(max_size=70)
COUNTS = st.integers(1, 2**31 - 1)


@cache
def oracle() -> Oracle:
    return Oracle([java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(SOURCE)])


def kafkas(questions: Sequence[tuple[bytes, int]]) -> list[tuple[int, int]]:
    """Hash (unsigned) and partition as Kafka's classes have them."""
    answers = oracle().ask([f"{key.hex() or '-'} {count}" for key, count in questions])
    found = [answer.split(" ") for answer in answers]
    return [(int(hashed) % 2**32, int(partition)) for _, hashed, partition in found]


@pytest.mark.process
@given(questions=st.lists(st.tuples(KEYS, COUNTS), min_size=1, max_size=50))
def test_kafkas_partitioner_sends_a_key_to_the_same_partition(questions: list[tuple[bytes, int]]) -> None:
    assert [(murmur2(key), partition_of_key(key, count)) for key, count in questions] == kafkas(questions)


@pytest.mark.process
def test_every_length_and_every_byte_is_hashed_as_kafka_does() -> None:
    keys = [bytes(range(256))[:length] for length in range(257)] + [bytes([byte]) * 3 for byte in range(256)]
    assert [murmur2(key) for key in keys] == [hashed for hashed, _ in kafkas([(key, 7) for key in keys])]


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
