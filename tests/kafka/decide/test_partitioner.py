"""Partitions of records by key, against Kafka's own partitioner, and of records without one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ferry.dev.jars import jars, java
from ferry.wire.partitioner import murmur2, partition_of_key
from tests.oracle import Oracle
from tests.pure.decide.test_partitioner import KEYS

SOURCE = Path(__file__).with_name("PartitionerOracle.java")
COUNTS = st.integers(1, 2**31 - 1)


@cache
def oracle() -> Oracle:
    return Oracle([java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(SOURCE)])


def kafkas(questions: Sequence[tuple[bytes, int]]) -> list[tuple[int, int]]:
    """Hash (unsigned) and partition as Kafka's classes have them."""
    answers = oracle().ask([f"{key.hex() or '-'} {count}" for key, count in questions])
    found = [answer.split(" ") for answer in answers]
    return [(int(hashed) % 2**32, int(partition)) for _, hashed, partition in found]


@given(questions=st.lists(st.tuples(KEYS, COUNTS), min_size=1, max_size=50))
def test_kafkas_partitioner_sends_a_key_to_the_same_partition(questions: list[tuple[bytes, int]]) -> None:
    assert [(murmur2(key), partition_of_key(key, count)) for key, count in questions] == kafkas(questions)


def test_every_length_and_every_byte_is_hashed_as_kafka_does() -> None:
    keys = [bytes(range(256))[:length] for length in range(257)] + [bytes([byte]) * 3 for byte in range(256)]
    assert [murmur2(key) for key in keys] == [hashed for hashed, _ in kafkas([(key, 7) for key in keys])]
