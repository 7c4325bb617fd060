"""What a run copied of each topic: the ranges of offsets on both sides, for whoever goes on from there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.model import Receipt, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """Source offsets `[start, end)` of a partition; their records lie in target `[target_start, target_end)`."""

    partition: int
    start: int
    end: int
    target_start: int
    target_end: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRanges:
    """One topic that a run copied records of; `source` and `target` are its names there."""

    source: str
    target: str
    records: int
    bytes: int
    partitions: tuple[PartitionRange, ...]


def topic_ranges(receipts: Iterable[Receipt]) -> list[TopicRanges]:
    """By topic, in order; topics and partitions without a record are left out."""
    places: dict[tuple[TopicPartition, TopicPartition], list[Receipt]] = {}
    for receipt in receipts:
        if receipt.segments:
            places.setdefault((receipt.source, receipt.target), []).append(receipt)
    topics: dict[tuple[str, str], list[list[Receipt]]] = {}
    for (source, target), ones in sorted(places.items()):
        topics.setdefault((source.topic, target.topic), []).append(ones)
    return [
        TopicRanges(
            source=source,
            target=target,
            records=sum(one.records for ones in parts for one in ones),
            bytes=sum(one.bytes for ones in parts for one in ones),
            partitions=tuple(map(_range_of, parts)),
        )
        for (source, target), parts in topics.items()
    ]


def _range_of(receipts: list[Receipt]) -> PartitionRange:
    segments = [segment for receipt in receipts for segment in receipt.segments]
    return PartitionRange(
        partition=receipts[0].target.partition,
        start=min(receipt.start for receipt in receipts),
        end=max(receipt.end for receipt in receipts),
        target_start=min(segment.target_start for segment in segments),
        target_end=max(segment.target_end for segment in segments),
        records=sum(receipt.records for receipt in receipts),
    )
