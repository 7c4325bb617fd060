"""Moves batches from the fetch buffer to the same offsets of the target, one request at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ferry.clock import wall_ms
from ferry.copy.batching import Packing, PackingRules
from ferry.copy.chunk import PartProgress
from ferry.copy.copier import Copier
from ferry.copy.part import Part
from ferry.copy.prepared_batch import PreparedBatch
from ferry.copy.produce_queue import ProduceQueue, Request
from ferry.copy.transcode_pool import Workshop
from ferry.features.identical.acts.data_writer import DataWriter
from ferry.features.identical.rules.marked import is_seen
from ferry.features.identical.rules.stamped import sequence_of
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.fetch_buffer import FetchBuffer, ReadFailure
from ferry.messages.refusals import refused
from ferry.model import Refusal, TopicPartition
from ferry.protocol.drops import Drop, drop
from ferry.wire.batch import restamped


class OneByOne(ProduceQueue):
    """Has one request in flight, and takes an answer only with the offset that the batch must have.

    A broker without producer state takes any first sequence number. So no batch may be sent before the one before it
    is answered.
    """

    def __init__(self, target: Cluster, writer: DataWriter, answered: Callable[[], None]) -> None:
        super().__init__(target, writer, answered)
        self._data = writer

    async def _join(self, request: Request) -> None:
        await super()._join(request)
        self._data.until_ms = min(
            out.batch.max_timestamp + (part.piece.max_age_ms or 0) for part, out in request.entries.values()
        )

    async def send(self, node: int, request: Request) -> None:
        """Send one more request when all others were answered. Raises as `send_first`."""
        await self.settle_all()
        await super().send(node, request)

    def _misplaced(self, part: Part, out: PreparedBatch, base: int) -> Drop | None:
        if base == out.start:
            self._data.appended(part.piece.target, out.end)
            return None
        return drop("identical.shifted", part.piece, out.start, place=str(part.piece.target), at=out.start, base=base)


class WithoutHoles(Packing):
    """The next batch of each partition, if it begins where the last one ended and has a record at each offset.

    Otherwise the partition is read no further, and `stopped` has the reason.
    """

    def __init__(self, copier: IdenticalCopier, buffer: FetchBuffer, rules: PackingRules, workshop: Workshop) -> None:
        super().__init__(buffer, rules, workshop)
        self._copier = copier
        self.stopped: dict[TopicPartition, Refusal] = {}
        """The reasons of the partitions that are read no further."""

    def next(self, place: TopicPartition, part: PartProgress) -> PreparedBatch | None:
        """Return the batch to send next; None when nothing waits, or nothing of it can have its offset."""
        at, before = part.end, (part.left_behind, part.control, part.aborted)
        queue = self._buffer.queues[place]
        seen = bool(queue) and queue[0].hidden and is_seen(queue[0].batch, at)
        out = super().next(place, part)
        passed = part.end > at
        if passed:  # what it has passed over is no record
            part.end = at
            part.left_behind, part.control, part.aborted = before
            refusal: Refusal | None = self._copier.hole(part, at, seen=seen)
        else:
            refusal = self._copier.refusal_of(part, out) if out is not None else None
        if refusal is not None:
            self._stop(place, refusal)
            return None
        return out

    def _stop(self, place: TopicPartition, refusal: Refusal) -> None:
        for out in self.dropped(place):
            self._buffer.release(out.answers)
        self._buffer.give_up(place, ReadFailure(kind=refusal.kind, message=refusal.message, offset=-1))
        self.stopped[place] = refusal


class IdenticalCopier(Copier):
    """Fills chunks whose records have the offsets of the source. They are in no transaction."""

    MARKERS: ClassVar[int] = 0
    _writer: DataWriter
    _packing: WithoutHoles

    def _packing_of(self, rules: PackingRules, workshop: Workshop) -> WithoutHoles:
        return WithoutHoles(self, self._buffer, rules, workshop)

    def _queue(self) -> ProduceQueue:
        return OneByOne(self._target, self._writer, self._buffer.wake)

    def _stamped(self, part: PartProgress, out: PreparedBatch) -> memoryview:
        writer = self._writer
        return restamped(
            out.batch, writer.producer_id, writer.producer_epoch, sequence_of(out.start), transactional=False
        )

    def _sort_arrivals(self) -> None:
        super()._sort_arrivals()
        self.refusals |= self._packing.stopped

    def _finish(self, place: TopicPartition) -> None:
        part = self._part(place)
        if part.end < self._pieces[place].end:
            self.refusals[place] = self.hole(part, part.end)
            return
        super()._finish(place)

    def refusal_of(self, part: PartProgress, out: PreparedBatch) -> Refusal | None:
        """Return why a batch cannot be written at its offsets; None if it can."""
        if out.start != part.end or len(out.runs) != 1:
            return self.hole(part, part.end if out.start != part.end else out.start + out.runs[0][1])
        if out.start + out.runs[0][1] != out.end:
            return self.hole(part, out.start + out.runs[0][1])
        oldest = wall_ms() - (part.piece.max_age_ms or 0)
        if out.batch.max_timestamp > oldest:
            return None
        topic, number = part.piece.source
        return refused("identical.old", topic, number, at=out.start, oldest=oldest)

    def hole(self, part: PartProgress, offset: int, *, seen: bool = False) -> Refusal:
        """Return the refusal of a partition whose log has no record at an offset for readers.

        `seen`: the log has a marker or an aborted record there. Otherwise it has nothing.
        """
        topic, number = part.piece.source
        return refused("identical.hole" if seen else "identical.absent", topic, number, at=offset)
