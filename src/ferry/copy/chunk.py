"""What a chunk has copied so far, for each partition; becomes the receipts and positions of its transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ferry.clock import wall_ms
from ferry.copy.prepared_batch import PreparedBatch
from ferry.model import NOT_THROTTLED, AgeStats, Origin, Plan, Receipt, Segment, Slice, ThrottleTime
from ferry.wire.batch import Batch, extended_digest, if_known
from ferry.wire.renumber import OffsetSpan


@dataclass(slots=True, kw_only=True)
class PartProgress:
    """One partition's part of the open chunk; offsets are those of its Receipt."""

    plan: Plan
    origin: Origin
    piece: Slice
    start: int
    end: int
    target_next: int | None
    segments: list[list[int]] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    batches: int = 0
    transcoded: int = 0
    digest: int = 0
    aborted: int = 0
    control: int = 0
    left_behind: int = 0
    """Records that were there and are not copied: markers and those of aborted transactions."""
    max_timestamp: int = -1
    min_timestamp: int = -1
    timed: int = 0
    """Records whose batches have a timestamp; `timestamps` and `ages` are sums over them, `age_min` the youngest's."""
    timestamps: int = 0
    ages: int = 0
    age_min: int = 0
    age_max: int = 0
    source_epoch: int = -1
    target_epoch: int = -1
    throttled: ThrottleTime = NOT_THROTTLED
    aged: bool = True
    """Whether records are sent when they are noted here; if not, how old they were then is not known."""
    markers: int = 0
    """Offsets of the target that markers pass, because the source has no record there."""
    expected: int = -1
    """The offset that the first batch must get if no other writer interferes; -1: not known."""

    @property
    def moved(self) -> bool:
        """Whether the chunk has passed any offset of this partition."""
        return self.end > self.start

    @property
    def missing(self) -> int:
        """Offsets for which the source's answers had no record."""
        return max(0, self.end - self.start - self.records - self.left_behind)

    @property
    def wrote(self) -> bool:
        """Whether the chunk has written anything to the target partition."""
        return bool(self.segments or self.markers)

    def mark(self, batch: Batch, end: int) -> None:
        """Note that markers at the same offsets pass a batch whose records are not copied, up to `end`."""
        self.markers += end - self.end
        if end == min(batch.next_offset, self.piece.end):
            self.pass_over(batch)
        else:
            self.left_behind += end - self.end
            self.end, self.source_epoch = end, batch.leader_epoch
        self.target_next = self.expected = end

    def pass_over(self, batch: Batch) -> None:
        """Skip a batch whose records are not copied: a marker, an aborted transaction's, an empty one."""
        end = min(batch.next_offset, self.piece.end)
        # Of a batch that is partly in the range, at most as many records count as it has offsets there.
        self.left_behind += min(batch.record_count, max(0, end - self.end))
        self.end = max(self.end, end)
        self.source_epoch = batch.leader_epoch
        if batch.is_control:
            self.control += 1
        elif batch.record_count:
            self.aborted += 1

    def reached(self, end: int, epoch: int) -> None:
        """Note that no more records come before `end`. After the last batch, a log of leader epoch `epoch` shows it.

        The receipt's end and its epoch belong together: the next plan uses them to find out whether the log was cut.
        """
        if end > self.end:
            self.end, self.source_epoch = end, epoch

    def sent(self, out: PreparedBatch) -> None:
        """Note a batch that was sent; all answers are awaited before the chunk counts."""
        batch, count = out.batch, out.batch.record_count
        first = batch.first_timestamp if out.first_timestamp is None else out.first_timestamp
        last = batch.max_timestamp
        self.end = max(self.end, out.end)
        self.records += count
        self.bytes += len(batch.data)
        self.batches += 1
        self.transcoded += out.transcoded
        self.digest = extended_digest(self.digest, batch)
        self.source_epoch = out.source_epoch
        if last > self.max_timestamp:
            self.max_timestamp = last
        if first < 0:  # no timestamp
            return
        # Records are not opened: each counts with the middle between its batch's first and largest timestamp. The sums
        # are written out because this runs for every batch.
        middle, now = (first + last) // 2, wall_ms()
        self.timestamps += count * middle
        self.ages += count * (now - middle)
        if not self.timed:
            self.min_timestamp, self.age_min, self.age_max = first, now - last, now - first
        else:
            if first < self.min_timestamp:
                self.min_timestamp = first
            if now - last < self.age_min:
                self.age_min = now - last
            if now - first > self.age_max:
                self.age_max = now - first
        self.timed += count

    def written(self, runs: Iterable[OffsetSpan], target_base: int) -> bool:
        """Note the broker's answer for one batch; return False if another writer's records are between ours."""
        last = self.segments[-1] if self.segments else None
        contiguous = last is None or self.target_next == target_base
        at = target_base
        for start, count in runs:
            if last is not None and last[0] + last[2] == start and last[1] + last[2] == at:
                last[2] += count
            else:
                last = [start, at, count]
                self.segments.append(last)
            at += count
        self.target_next = at
        return contiguous or self.piece.merged

    def is_elsewhere(self, target_base: int) -> bool:
        """Return whether the first batch got another offset than expected: a foreign writer may be the cause."""
        return not self.segments and 0 <= self.expected != target_base and not self.piece.merged

    def receipt(self) -> Receipt:
        """Return the receipt of this part."""
        plan = self.plan
        return Receipt(
            flow=plan.flow,
            lane=plan.lane,
            run=plan.run,
            generation=plan.generation,
            slot=self.piece.slot,
            source=self.piece.source,
            target=self.piece.target,
            start=self.start,
            end=self.end,
            target_next=self.target_next,
            segments=tuple(Segment(source_start=s, target_start=t, count=n) for s, t, n in self.segments),
            records=self.records,
            bytes=self.bytes,
            batches=self.batches,
            digest=f"{self.digest:08x}",
            at_ms=wall_ms(),
            transcoded=self.transcoded,
            aborted_batches=self.aborted,
            control_batches=self.control,
            missing=self.missing,
            max_timestamp_ms=if_known(self.max_timestamp),
            min_timestamp_ms=if_known(self.min_timestamp),
            mean_timestamp_ms=self.timestamps // self.timed if self.timed else None,
            ages=self._ages(),
            source_epoch=if_known(self.source_epoch),
            source_topic_id=self.piece.source_topic_id,
            target_topic_id=self.piece.target_topic_id,
            source_cluster_id=plan.source_cluster_id,
            target_cluster_id=plan.target_cluster_id,
            since=self.piece.since,
            target_epoch=if_known(self.target_epoch),
            origin=self.origin,
            throttled=self.throttled,
            identical=self.piece.producer is not None,
        )

    def _ages(self) -> AgeStats | None:
        if not self.timed or not self.aged:
            return None
        return AgeStats(min=self.age_min, mean=self.ages // self.timed, max=self.age_max, records=self.timed)

    def position(self) -> tuple[int, str]:
        """Return offset and metadata for the position group."""
        metadata = {"source_next": self.end, "generation": self.plan.generation, "source_epoch": self.source_epoch}
        return self.target_next or 0, json.dumps(metadata, separators=(",", ":"))
