"""What a run tells of each topic are the outer bounds of its receipts."""

from __future__ import annotations

from dataclasses import replace

from ferry.decide.ledger.topic_ranges import PartitionRange, topic_ranges
from ferry.model import Segment
from tests.decide.values import RECEIPT, place


def test_ranges_are_those_of_all_chunks_and_topics_without_records_are_left_out() -> None:
    first = replace(
        RECEIPT, start=0, end=40, records=38, segments=(Segment(source_start=1, target_start=10, count=38),)
    )
    second = replace(
        RECEIPT, start=40, end=60, records=20, segments=(Segment(source_start=40, target_start=49, count=20),)
    )
    other = replace(first, source=place("orders", 1), target=place("a.orders", 1))
    empty = replace(RECEIPT, source=place("none"), target=place("a.none"), records=0, segments=())
    (found,) = topic_ranges([second, other, empty, first])
    assert (found.source, found.target, found.records) == ("orders", "a.orders", 96)
    assert found.partitions == (
        PartitionRange(partition=0, start=0, end=60, target_start=10, target_end=69, records=58),
        PartitionRange(partition=1, start=0, end=40, target_start=10, target_end=48, records=38),
    )
