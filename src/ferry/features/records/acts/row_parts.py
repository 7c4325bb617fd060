"""What a chunk of rows has so far of one slice or unit; becomes the receipt of its transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ferry.clock import wall_ms
from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import PreparedBatch
from ferry.features.records.acts.rows import RowBatch
from ferry.ledger.units import reached_at
from ferry.model import Epochs, Offsets, Origin, Plan, Reads, Receipt, Segment, Slice, TopicPartition
from ferry.wire.batch import Batch, extended_digest, if_known
from ferry.wire.renumber import OffsetSpan


@dataclass(slots=True, kw_only=True)
class SlicePart(PartProgress):
    """The part of a transformed slice: rows, with holes where the transform left some out.

    It cannot say which offsets had no record, and which records were left out. All of its batches are built again, so
    none counts as transcoded.
    """

    runs: int = 0
    """At least as many as its segments; each batch may begin a segment."""

    letters: int = 0
    """Records that are among the dead letters in place of the copy."""

    def wanted(self, row_batch: RowBatch) -> npt.NDArray[np.bool_]:
        """Report for each row whether it is still to be written."""
        return (row_batch.offsets >= self.end) & (row_batch.offsets < self.piece.end)

    def come_to(self, _partition: int, offset: int) -> None:
        """Record that all up to this source offset is sent."""
        self.end = offset + 1

    def come_to_end(self) -> None:
        """Record that no row is left: the rest of the slice was left out, or was never there."""
        self.end = self.piece.end

    def outgoing(self, row_batches: Sequence[RowBatch], batch: Batch) -> PreparedBatch:
        """Return the batch of these rows with its source offsets, and count it."""
        offsets = np.concatenate([row_batch.offsets for row_batch in row_batches])
        out = PreparedBatch(batch, runs_of(offsets), int(offsets[-1]) + 1, self.source_epoch, False, ())
        self.runs += len(out.runs)
        self.sent(out)
        return out

    def receipt(self) -> Receipt:
        """Return the receipt of this part; it has the transform, and no count of missing offsets."""
        piece = self.piece
        return replace(
            PartProgress.receipt(self),
            missing=None,
            transform=piece.transform,
            transform_digest=piece.transform_digest,
            dead_letters=self.letters,
        )


@dataclass(slots=True, kw_only=True)
class RepartitionedPart:
    """One target partition's part of the open chunk. `piece` is what was left of the unit when the slot began.

    `begins` and `reached` are where the chunk began and how far it has come.
    """

    plan: Plan
    origin: Origin
    piece: Slice
    begins: Offsets
    reached: Offsets
    target_next: int | None
    expected: int = -1
    target_epoch: int = -1
    source_epochs: Epochs = ()
    segments: list[list[int]] = field(default_factory=list)
    """`[-1, target offset, count]` of what was written without a gap between."""
    records: int = 0
    bytes: int = 0
    batches: int = 0
    digest: int = 0
    max_timestamp: int = -1
    letters: int = 0
    """Records that are among the dead letters in place of the copy."""

    @property
    def start(self) -> int:
        """Return the sum of the offsets at which the chunk began."""
        return sum(self.begins)

    @property
    def wrote(self) -> bool:
        """Report whether the chunk has written anything."""
        return bool(self.segments)

    @property
    def moved(self) -> bool:
        """Report whether the chunk got further on this partition."""
        return self.reached != self.begins

    def wanted(self, row_batch: RowBatch) -> npt.NDArray[np.bool_]:
        """Report for each row whether it is still to be written. Rows of newer partitions than the unit's are not."""
        unit, partitions = self.piece, row_batch.partitions
        known = partitions < len(unit.starts)
        at = np.where(known, partitions, 0)
        starts, ends = np.array(unit.starts, np.int64)[at], np.array(unit.ends, np.int64)[at]
        return known & (starts <= row_batch.offsets) & (row_batch.offsets < ends)

    def come_to(self, partition: int, offset: int) -> None:
        """Record that all up to this place is sent."""
        self.reached = reached_at(self.piece, partition, offset)

    def come_to_end(self) -> None:
        """Record that no row is left."""
        self.reached = self.piece.ends

    def outgoing(self, row_batches: Sequence[RowBatch], batch: Batch) -> PreparedBatch:
        """Return the batch of these rows with its source offsets; all answers are awaited before the chunk counts."""
        self._sent(batch)
        return PreparedBatch(batch, ((int(row_batches[0].offsets[0]), batch.record_count),), 0, -1, True, ())

    def _sent(self, batch: Batch) -> None:
        self.records += batch.record_count
        self.bytes += len(batch.data)
        self.batches += 1
        self.digest = extended_digest(self.digest, batch)
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)

    def written(self, runs: Iterable[OffsetSpan], target_base: int) -> bool:
        """Record the broker's answer for one batch; False when another writer's records are between ours."""
        count = sum(number for _, number in runs)
        contiguous = not self.segments or self.target_next == target_base
        if self.segments and contiguous:
            self.segments[-1][2] += count
        else:
            self.segments.append([-1, target_base, count])
        self.target_next = target_base + count
        return contiguous

    def is_elsewhere(self, target_base: int) -> bool:
        """Report whether the first batch is at another offset than expected: another writer may have written before."""
        return not self.segments and 0 <= self.expected != target_base

    def receipt(self) -> Receipt:
        """Return the receipt of this part."""
        plan, unit = self.plan, self.piece
        reads = Reads(starts=self.begins, ends=self.reached, epochs=self.source_epochs)
        return Receipt(
            flow=plan.flow,
            lane=plan.lane,
            run=plan.run,
            generation=plan.generation,
            slot=unit.slot,
            source=TopicPartition(unit.source.topic, unit.target.partition),
            target=unit.target,
            start=reads.start,
            end=reads.end,
            target_next=self.target_next,
            segments=tuple(Segment(source_start=reads.start, target_start=t, count=n) for _, t, n in self.segments),
            records=self.records,
            bytes=self.bytes,
            batches=self.batches,
            digest=f"{self.digest:08x}",
            since=unit.since,
            transform_digest=unit.transform_digest,
            at_ms=wall_ms(),
            max_timestamp_ms=if_known(self.max_timestamp),
            source_topic_id=unit.source_topic_id,
            target_topic_id=unit.target_topic_id,
            source_cluster_id=plan.source_cluster_id,
            target_cluster_id=plan.target_cluster_id,
            target_epoch=if_known(self.target_epoch),
            dead_letters=self.letters,
            origin=self.origin,
            reads=reads,
        )

    def position(self) -> tuple[int, str]:
        """Return no position: a group's offset cannot say how far many source partitions were read. The ledger does."""
        return self.target_next or 0, ""


RowPart = SlicePart | RepartitionedPart


def runs_of(offsets: npt.NDArray[np.int64]) -> tuple[OffsetSpan, ...]:
    """Return the first offset and the number of each batch without a hole, of ascending source offsets."""
    begins = np.concatenate(([0], np.flatnonzero(np.diff(offsets) != 1) + 1))
    counts = np.diff(np.append(begins, len(offsets)))
    return tuple(zip(offsets[begins].tolist(), counts.tolist(), strict=True))
