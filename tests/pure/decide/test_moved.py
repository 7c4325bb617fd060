"""Missing here and extra there is moved."""

from __future__ import annotations

from ferry.features.verify.rules.differences import SHOWN
from ferry.features.verify.rules.moved_records import with_moved
from ferry.model import Difference, DifferenceKind, RecordContent, TopicPartition
from ferry.plan.rules.record_sample import record_samples

SEE = record_samples(b"s", values=False)
Kind = DifferenceKind


def missing(partition: int, *values: bytes, topic: str = "t") -> Difference:
    seen = tuple(SEE(RecordContent(5 + index, 1, None, value, b"\0")) for index, value in enumerate(values))
    return Difference(
        source=TopicPartition(topic, partition), target=TopicPartition(f"a.{topic}", partition), kind=Kind.MISSING,
        source_range=(5, 5 + len(values)), target_range=(7, 7), source_records=seen,
    )  # fmt: skip


def extra(partition: int, *values: bytes, topic: str = "t") -> Difference:
    seen = tuple(SEE(RecordContent(90 + index, 1, None, value, b"\0")) for index, value in enumerate(values))
    return Difference(
        source=TopicPartition(topic, partition), target=TopicPartition(f"a.{topic}", partition), kind=Kind.EXTRA,
        source_range=(3, 3), target_range=(90, 90 + len(values)), target_records=seen,
    )  # fmt: skip


def test_the_same_records_in_another_partition_are_moved() -> None:
    (found,) = with_moved([missing(0, b"x", b"y"), extra(1, b"x", b"y")])
    assert (found.kind, found.source, found.target) == (
        Kind.MOVED, TopicPartition("t", 0), TopicPartition("a.t", 1),
    )  # fmt: skip
    assert (found.source_range, found.target_range) == ((5, 7), (90, 92))
    assert len(found.source_records) == len(found.target_records) == 2


def test_other_records_other_topics_and_the_same_partition_are_not() -> None:
    for pair in (
        [missing(0, b"x"), extra(1, b"y")],
        [missing(0, b"x"), extra(1, b"x", topic="u")],
        [missing(0, b"x"), extra(0, b"x")],
        [missing(0, *[b"x"] * SHOWN), extra(1, *[b"x"] * SHOWN)],
    ):
        assert with_moved(pair) == pair


def test_each_extra_accounts_for_one_missing() -> None:
    found = with_moved([missing(0, b"x"), missing(2, b"x"), extra(1, b"x")])
    assert [one.kind for one in found] == [Kind.MOVED, Kind.MISSING]
