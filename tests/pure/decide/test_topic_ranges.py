"""What a run tells of each topic are the outer bounds of its receipts."""

from __future__ import annotations

from dataclasses import replace

from ferry.ledger.topic_ranges import DealtRange, PartitionRange, SourceRange, topic_ranges
from ferry.model import Segment
from tests.pure.decide.test_deal import receipt as unit_receipt
from tests.pure.decide.values import RECEIPT, place, redealt


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
    assert not found.dealt
    assert found.read == (SourceRange(partition=0, start=0, end=60), SourceRange(partition=1, start=0, end=40))


def test_a_dealt_topic_has_ranges_of_the_targets_partitions_and_others_of_the_sources() -> None:
    """What was read without a record of it counts as read; a partition that got nothing is left out."""
    first = redealt(unit_receipt(1, (4, 0), target_next=10), target_start=7, records=3, bytes=30)
    second = redealt(
        unit_receipt(1, (9, 2), target_next=13), starts=(4, 0), target_start=11, records=2, bytes=20
    )  # a commit marker lies between
    without = redealt(unit_receipt(0, (9, 5), target_next=50), starts=(2, 0))
    other = redealt(without, topic="none", target=place("a.none"))
    kept = replace(RECEIPT, source=place("z"), target=place("a.z"))
    found, last = topic_ranges([kept, second, other, without, first])
    assert (found.source, found.target, found.records, found.bytes, found.dealt) == ("t", "a.t", 5, 50, True)
    assert found.partitions == (DealtRange(partition=1, target_start=7, target_end=13, records=5),)
    assert found.read == (SourceRange(partition=0, start=0, end=9), SourceRange(partition=1, start=0, end=5))
    assert (last.source, last.dealt) == ("z", False)
