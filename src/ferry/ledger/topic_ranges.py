"""What a run copied of each topic: the ranges of offsets on both sides, for programs that continue from there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.ledger.units import done_ranges
from ferry.model import Receipt, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """Source offsets `[start, end)` of a partition; their records are in target `[target_start, target_end)`."""

    partition: int
    start: int
    end: int
    target_start: int
    target_end: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtRange:
    """Records that were repartitioned to a target partition, in `[target_start, target_end)`.

    They come from any source partition.
    """

    partition: int
    target_start: int
    target_end: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRange:
    """The offsets `[start, end)` of a source partition that are done."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRanges:
    """One topic of which a run copied records; `source` and `target` are its names on both sides."""

    source: str
    target: str
    records: int
    bytes: int
    partitions: tuple[PartitionRange, ...] | tuple[DealtRange, ...]
    """The target partitions that got records."""
    read: tuple[SourceRange, ...]
    """The source partitions that the records came from; those of the target when the topic keeps its partitions."""
    newest_ms: int | None = None
    """The timestamp of the newest record; None: not known."""
    dealt: bool = False
    """Whether its records were repartitioned."""


def topic_ranges(receipts: Iterable[Receipt]) -> list[TopicRanges]:
    """Return the ranges by topic, in order, without topics and target partitions that got no record."""
    every = list(receipts)
    found = [*_kept(one for one in every if not one.dealt), *_dealt(one for one in every if one.dealt)]
    return sorted(found, key=lambda one: (one.source, one.target))


def _kept(receipts: Iterable[Receipt]) -> list[TopicRanges]:
    places: dict[tuple[TopicPartition, TopicPartition], list[Receipt]] = {}
    for receipt in receipts:
        if receipt.segments:
            places.setdefault((receipt.source, receipt.target), []).append(receipt)
    topics: dict[tuple[str, str], list[list[Receipt]]] = {}
    for (source, target), ones in sorted(places.items()):
        topics.setdefault((source.topic, target.topic), []).append(ones)
    found = []
    for (source_topic, target_topic), parts in topics.items():
        partitions = tuple(map(_range_of, parts))
        topic = TopicRanges(
            source=source_topic,
            target=target_topic,
            records=sum(one.records for ones in parts for one in ones),
            bytes=sum(one.bytes for ones in parts for one in ones),
            newest_ms=_newest(one for ones in parts for one in ones),
            partitions=partitions,
            read=tuple(SourceRange(partition=part.partition, start=part.start, end=part.end) for part in partitions),
        )
        found.append(topic)
    return found


def _newest(receipts: Iterable[Receipt]) -> int | None:
    """Return the newest record's timestamp; None when one of the receipts does not have it."""
    known = [one.max_timestamp_ms for one in receipts if one.records]
    return None if None in known else max((at_ms for at_ms in known if at_ms is not None), default=None)


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


def _dealt(units: Iterable[Receipt]) -> list[TopicRanges]:
    topics: dict[tuple[str, str], list[Receipt]] = {}
    for unit in units:
        topics.setdefault((unit.source.topic, unit.target.topic), []).append(unit)
    return [_dealt_topic(own) for own in topics.values() if any(unit.records for unit in own)]


def _dealt_topic(own: list[Receipt]) -> TopicRanges:
    """Return the ranges of one topic. Receipts without records, too, show what was read of the source."""
    parts: dict[int, list[Receipt]] = {}
    for unit in own:
        if unit.records:
            parts.setdefault(unit.target.partition, []).append(unit)
    return TopicRanges(
        source=own[0].source.topic,
        target=own[0].target.topic,
        records=sum(unit.records for unit in own),
        bytes=sum(unit.bytes for unit in own),
        newest_ms=_newest(own),
        partitions=tuple(
            DealtRange(
                partition=number,
                target_start=min(unit.target_start or 0 for unit in units),
                target_end=max(unit.target_next or 0 for unit in units),
                records=sum(unit.records for unit in units),
            )
            for number, units in sorted(parts.items())
        ),
        read=tuple(
            SourceRange(partition=place.partition, start=start, end=end)
            for place, (start, end) in sorted(done_ranges(own).items())
        ),
        dealt=True,
    )
