"""Moves batches from the fetch buffer to the same offsets of the target, one request at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

from ferry.clock import wall_ms
from ferry.copy.batching import Batching, BatchingRules
from ferry.copy.chunk import PartProgress
from ferry.copy.copier import Copier
from ferry.copy.dropped import answered_drop, leader_of
from ferry.copy.part import Part
from ferry.copy.prepared_batch import PreparedBatch
from ferry.copy.produce_queue import ProduceQueue, Request
from ferry.copy.transcode_pool import TranscodePool
from ferry.errors import Retryable
from ferry.features.identical.acts.data_writer import DataWriter, Unanswered
from ferry.features.identical.rules.marked import is_seen
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TooOld
from ferry.kafka.fetch.fetch_buffer import FetchBuffer, ReadFailure
from ferry.messages.refusals import refused
from ferry.model import Refusal, Slice, TopicPartition
from ferry.protocol.drops import Drop, Dropped, drop, verdict
from ferry.wire.batch import Batch

MOST_MARKERS = 2_000
"""The most markers of a request."""
MARKER_BYTES = 78
"""What a marker takes of a chunk's bytes: its size in the log."""


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
        until: list[int | None] = []
        for part, out in request.entries.values():
            place, most = part.piece.target, part.piece.max_age_ms or 0
            until += [out.batch.max_timestamp + most, self._data.usable_until(place, out, request.batches[place], most)]
        self._data.until_ms = min(one for one in until if one is not None)

    async def send(self, node: int, request: Request) -> None:
        """Send one more request when all others were answered. Raises as `send_first`."""
        await self.settle_all()
        await super().send(node, request)

    def _misplaced(self, part: Part, out: PreparedBatch, base: int) -> Drop | None:
        if base == out.start:
            self._data.appended(part.piece.target, out)
            return None
        return drop("identical.shifted", part.piece, out.start, place=str(part.piece.target), at=out.start, base=base)


class Hole(NamedTuple):
    """Offsets of a part from its end up to `end`, at which the source shows that there is no record, and never will be.

    `batches` show it, each up to an offset.
    """

    part: PartProgress
    batches: list[tuple[Batch, int]]

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self.batches[-1][1]


class WithoutHoles(Batching):
    """The next batch of each partition, if it begins where the last one ended and has a record at each offset.

    A partition that comes to a hole which markers may pass has no next batch, and is in `waiting`. Otherwise it is read
    no further, and `stopped` has the reason.
    """

    def __init__(self, copier: IdenticalCopier, buffer: FetchBuffer, rules: BatchingRules, pool: TranscodePool) -> None:
        super().__init__(buffer, rules, pool)
        self._copier = copier
        self.stopped: dict[TopicPartition, Refusal] = {}
        """The reasons of the partitions that are read no further."""
        self.waiting: dict[TopicPartition, PartProgress] = {}
        """The parts of partitions that are at a hole, which markers may pass."""

    def next(self, place: TopicPartition, part: PartProgress) -> PreparedBatch | None:
        """Return the batch to send next; None when nothing waits, or nothing of it can have its offset."""
        at, before = part.end, (part.left_behind, part.control, part.aborted)
        queue = self._buffer.queues[place]
        seen = bool(queue) and queue[0].hidden and is_seen(queue[0].batch, at)
        if seen and part.piece.late_ms is not None and not self._ready.get(place):
            self.waiting[place] = part
            return None
        out = super().next(place, part)
        passed = part.end > at
        if passed:  # what it has skipped is not a record
            part.end = at
            part.left_behind, part.control, part.aborted = before
            refusal: Refusal | None = self._copier.hole(part, at, seen=seen)
        else:
            refusal = self._copier.refusal_of(part, out) if out is not None else None
        if refusal is not None:
            self.stop(place, refusal)
            return None
        return out

    def hole(self, place: TopicPartition, part: PartProgress, most: int) -> Hole:
        """Return up to `most` offsets of the hole that a partition is at."""
        at, found, stop = part.end, list[tuple[Batch, int]](), min(part.piece.end, part.end + most)
        for fetched in self._buffer.queues[place]:
            if at >= stop or not fetched.hidden or not is_seen(fetched.batch, at):
                break
            at = min(fetched.batch.next_offset, stop)
            found.append((fetched.batch, at))
        return Hole(part, found)

    def passed(self, place: TopicPartition, hole: Hole) -> None:
        """Note that markers have passed a hole."""
        for batch, end in hole.batches:
            hole.part.mark(batch, end)
            if end == min(batch.next_offset, hole.part.piece.end):
                self._begun.add(place)
                self._buffer.release([self._buffer.take(place).answer])

    def stop(self, place: TopicPartition, refusal: Refusal) -> None:
        for out in self.dropped(place):
            self._buffer.release(out.answers)
        self._buffer.give_up(place, ReadFailure(kind=refusal.kind, message=refusal.message, offset=-1))
        self.stopped[place] = refusal


class IdenticalCopier(Copier):
    """Fills chunks whose records have the offsets of the source. They are in no transaction."""

    MARKERS: ClassVar[int] = 0
    _writer: DataWriter
    _batching: WithoutHoles
    _held_back = False
    """Whether the holes that partitions are at waited for one round of the others already."""

    def _batching_of(self, rules: BatchingRules, pool: TranscodePool) -> WithoutHoles:
        return WithoutHoles(self, self._buffer, rules, pool)

    def _queue(self) -> ProduceQueue:
        return OneByOne(self._target, self._writer, self._buffer.wake)

    async def _pass_holes(self, queue: ProduceQueue) -> int:
        """Pass the holes that partitions are at, all of a leader by one request; return the markers' bytes.

        Partitions stop to which a marker of an earlier writer may come yet. Raises Dropped for those whose markers were
        not answered, or are not permitted, Blocked for those that get none now, and Retryable.
        """
        waiting, self._batching.waiting = self._batching.waiting, {}
        if not waiting:
            return 0
        # Partitions of one source transaction are at its markers at the same time, unless they were fetched apart.
        # One round later they are together again, and one request is enough for all.
        self._held_back = queue.in_flight and not self._held_back
        if self._held_back:
            return 0
        await queue.settle_all()
        by_node: dict[int, dict[TopicPartition, PartProgress]] = {}
        for place, part in waiting.items():
            if self._writer.markers.is_quiet(part.piece.target):
                by_node.setdefault(leader_of(self._target, part.piece, part.end), {})[place] = part
            else:
                self._batching.stop(place, self._not_quiet(part.piece, part.end).refusal)
        passed = 0
        for node, parts in by_node.items():
            most = max(1, MOST_MARKERS // len(parts))
            holes = {place: self._batching.hole(place, part, most) for place, part in parts.items()}
            await self._mark(node, holes)
            for place, hole in holes.items():
                passed += hole.end - hole.part.end
                self._batching.passed(place, hole)
        return MARKER_BYTES * passed

    async def _mark(self, node: int, holes: Mapping[TopicPartition, Hole]) -> None:
        parts = {hole.part.piece.target: hole.part for hole in holes.values()}
        ends = {hole.part.piece.target: (hole.part.end, hole.end) for hole in holes.values()}
        try:
            wrong = await self._writer.mark(node, ends)
        except Unanswered as error:
            raise Dropped([self._not_quiet(parts[place].piece, parts[place].end) for place in error.places]) from error
        except TooOld as error:
            raise Dropped([_not_permitted(part.piece, part.end) for part in parts.values()]) from error
        if not wrong:
            return
        denied = [place for place, code in wrong.items() if code in codes.UNAUTHORIZED]
        if denied:
            raise Dropped([_not_permitted(parts[place].piece, parts[place].end) for place in denied])
        alias, drops = self._target.alias, list[Drop | None]()
        for place, code in wrong.items():
            found = answered_drop(parts[place].piece, parts[place].end, code, alias, "write a marker to", "ALTER")
            if found is None:
                raise Retryable(f"a marker for {place} on cluster {alias}: {codes.describe(code)}")
            drops.append(found)
        raise verdict(drops)

    def _not_quiet(self, piece: Slice, at: int) -> Drop:
        return not_quiet(piece, at, self._writer.markers.quiet_at(piece.target))

    def _sort_arrivals(self) -> None:
        super()._sort_arrivals()
        self.refusals |= self._batching.stopped

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

        `seen`: the log has a marker or an aborted record there, and markers may not be written. Otherwise it has
        nothing.
        """
        if seen:
            return _not_permitted(part.piece, offset).refusal
        topic, number = part.piece.source
        return refused("identical.absent", topic, number, at=offset)


def not_quiet(piece: Slice, at: int, until: int) -> Drop:
    """Make the drop of a partition that is not written from offset `at` on, because a marker may arrive there."""
    return drop("identical.not-quiet", piece, at, at=at, place=str(piece.target), until=until)


def expires(piece: Slice, at: int, until: int) -> Drop:
    """Make the drop of a partition whose next sequence number is that of a producer state which may expire soon."""
    return drop("identical.expires", piece, at, at=at, place=str(piece.target), until=until)


def _not_permitted(piece: Slice, at: int) -> Drop:
    return drop("identical.hole", piece, at, at=at)
