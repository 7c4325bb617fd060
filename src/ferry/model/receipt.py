"""Receipts: the result of (a part of) a slice; written in the data's own transaction."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.ages import AgeStats
from ferry.model.flow import Flow, TopicPartition
from ferry.model.reads import Epochs, Offsets, Reads
from ferry.model.run import LOCAL, Origin
from ferry.model.segment import Segment
from ferry.model.throttled import NOT_THROTTLED, ThrottleTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one chunk did to one target partition.

    Source offsets `[start, end)` became the `segments`. Between segments are control batches, records of aborted
    transactions, and `missing` offsets of which the source has no record. Compaction leaves such offsets; None: an
    earlier Ferry did not count them. `target_next` is the target offset after the last copied record (the commit marker
    will be there); None: none was copied yet. `digest` is the CRC-32C of all record payloads in order, as written
    (hex). `transcoded` of the `batches` were encoded again; `source_epoch` is the leader epoch of the last batch.
    `throttled` is the whole chunk's, on one receipt of it, so that receipts add up. Times are ms, sizes bytes on the
    wire.

    A chunk is repartitioned (`dealt`) when its topic gets other partitions: it has records of all source partitions.
    Then `reads` has the offsets of each, and `start` and `end` are its sums. `source` has the number of the target
    partition, and a segment does not name source offsets.
    """

    flow: Flow
    lane: str
    run: str
    generation: int
    slot: int
    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    target_next: int | None
    segments: tuple[Segment, ...]
    records: int
    bytes: int
    batches: int
    digest: str
    at_ms: int
    transcoded: int = 0
    aborted_batches: int = 0
    control_batches: int = 0
    missing: int | None = None
    max_timestamp_ms: int | None = None
    min_timestamp_ms: int | None = None
    """The smallest first timestamp of its batches, which stay unopened; None: none had one, or it is not known."""
    mean_timestamp_ms: int | None = None
    """The records' mean timestamp; each record counts as halfway between its batch's first and largest timestamp."""
    ages: AgeStats | None = None
    """How old the records were when they went to the target.

    None where their timestamps are not known, or where an earlier run wrote them and died before its receipt.
    """
    source_epoch: int | None = None
    source_topic_id: str = ""
    target_topic_id: str = ""
    source_cluster_id: str = ""
    target_cluster_id: str = ""
    since: int = -1
    """The run, by its generation, that last went back on this partition (ADR 18); -1: none did.

    For a repartitioned chunk, the run that began the repartitioning rule.
    """
    target_epoch: int | None = None
    """A leader epoch of the target in which its log reached `target_next` (KIP-101); None: not known."""
    adopted: str = ""
    """The replicator (`Predecessor`) that copied the partition up to here before the lane did.

    The receipt is then empty (ADR 23).
    """
    transform: str = ""
    """The name of the transform that made the records, and may have left some out; empty: none did."""
    transform_digest: str = ""
    dead_letters: int = 0
    """Records that went to the dead letters in place of the copy, in the same transaction."""
    origin: Origin = LOCAL
    throttled: ThrottleTime = NOT_THROTTLED
    reads: Reads | None = None
    """What a repartitioned chunk has read of each source partition; None: it has read `source` alone."""
    identical: bool = False
    """Whether each record has the same offset on both sides, and was written outside of the receipt's transaction."""

    @property
    def dealt(self) -> bool:
        """Whether it has records of all partitions of the source topic."""
        return self.reads is not None

    @property
    def starts(self) -> Offsets:
        """The offset where it began in each partition of which it has records."""
        return (self.start,) if self.reads is None else self.reads.starts

    @property
    def ends(self) -> Offsets:
        """The offset where it ended in each of these partitions: everything before is done."""
        return (self.end,) if self.reads is None else self.reads.ends

    @property
    def spans(self) -> tuple[tuple[TopicPartition, int, int], ...]:
        """The source partitions that it has read, each with its `[start, end)`."""
        if self.reads is None:
            return ((self.source, self.start, self.end),)
        return self.reads.spans(self.source.topic)

    @property
    def epochs(self) -> Epochs:
        """Leader epochs in which these partitions' logs reached its ends (KIP-101); None, or shorter: not known."""
        return (self.source_epoch,) if self.reads is None else self.reads.epochs

    @property
    def target_start(self) -> int | None:
        """The target offset of its first record; None: it has none."""
        return self.segments[0].target_start if self.segments else None

    @property
    def latency(self) -> AgeStats | None:
        """How old the records were when the receipt was written; the commit follows at once."""
        youngest, mean, oldest = self.max_timestamp_ms, self.mean_timestamp_ms, self.min_timestamp_ms
        if self.ages is None or youngest is None or mean is None or oldest is None:
            return None
        at, count = self.at_ms, self.ages.records
        return AgeStats(min=at - youngest, mean=at - mean, max=at - oldest, records=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A lane's position on one target partition, as kept in the group `ferry.{flow}.{lane}` (the fast check)."""

    target_next: int
    source_next: int | None
    """The source offset at which the lane continues, and the run that committed it; None: an operator moved it."""
    generation: int | None
