"""What the target shows before a slot writes: settled ends, the last batch, and records that no receipt covers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferry.clock import boot_ms
from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import PreparedBatch
from ferry.errors import Retryable
from ferry.features.identical.acts.data_writer import Reading
from ferry.features.identical.rules.stamped import tail_of, wrong_with
from ferry.features.identical.rules.values import Code, Look, Tail
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, LEADER_LOG, listed_offsets
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import Content, Slice, TopicPartition
from ferry.protocol.drops import Drop, Dropped, drop, verdict
from ferry.wire.batch import Batch, producer_of
from ferry.wire.content import MOST_DECOMPRESSED, contents


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a target partition ends, settled, and where its log begins."""

    begin: int
    reading: Reading

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.reading.end


async def standings(target: Cluster, todo: Iterable[Slice]) -> dict[str, Standing]:
    """Return by target partition (as text) where its log begins and ends.

    Raises Dropped if something else than this lane's records is at the end, or fewer than receipts show. Raises
    Blocked if a leader does not answer, or its log has more than the replicas in sync.
    """
    pieces = {piece.target: piece for piece in todo}
    at, nodes = boot_ms(), _leaders(target, pieces)
    begins = await listed_offsets(target, dict.fromkeys(pieces, EARLIEST), isolation=READ_UNCOMMITTED)
    shown = await listed_offsets(target, dict.fromkeys(pieces, LATEST), isolation=READ_UNCOMMITTED)
    logs = await listed_offsets(target, dict.fromkeys(pieces, LATEST), isolation=READ_UNCOMMITTED, replica=LEADER_LOG)
    _refuse_moved(nodes, _leaders(target, pieces))
    drops: list[Drop] = []
    found: dict[str, Standing] = {}
    for place, piece in pieces.items():
        if place not in begins.found or place not in shown.found or place not in logs.found:
            drops.append(
                drop("target.silent", piece, piece.start, passing=True, place=str(place), cluster=target.alias)
            )
            continue
        end, log = shown.found[place], logs.found[place]
        if log != end:
            drops.append(
                drop("identical.unsettled", piece, piece.start, passing=True, place=str(place), end=log, shown=end)
            )
            continue
        standing = Standing(begin=begins.found[place], reading=Reading(end=end, at=at, node=nodes[place]))
        wrong = await _wrong(target, piece, standing)
        if wrong is not None:
            drops.append(wrong)
        else:
            found[str(place)] = standing
    if drops:
        raise verdict(drops)
    return found


def _leaders(target: Cluster, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return {place: target.leader(place) for place in places}


def _refuse_moved(before: Mapping[TopicPartition, int], after: Mapping[TopicPartition, int]) -> None:
    """Raise Retryable if a leader changed in between: it is not known which broker has answered."""
    moved = next((place for place, node in before.items() if after[place] != node), None)
    if moved is not None:
        raise Retryable(f"the leader of {moved} changed while its end was read: it is read again")


async def read_again(target: Cluster, known: Mapping[TopicPartition, Reading]) -> dict[TopicPartition, Reading]:
    """Return the readings of this moment. Raises Retryable if a log ends elsewhere than it is known to end."""
    at, nodes = boot_ms(), _leaders(target, known)
    shown = await listed_offsets(target, dict.fromkeys(known, LATEST), isolation=READ_UNCOMMITTED)
    logs = await listed_offsets(target, dict.fromkeys(known, LATEST), isolation=READ_UNCOMMITTED, replica=LEADER_LOG)
    _refuse_moved(nodes, _leaders(target, known))
    for place, one in known.items():
        if not shown.found.get(place) == logs.found.get(place) == one.end:
            raise Retryable(f"{place} ended at offset {one.end}, and ends elsewhere now: it is read again")
    return {place: Reading(end=one.end, at=at, node=nodes[place]) for place, one in known.items()}


async def _wrong(target: Cluster, piece: Slice, standing: Standing) -> Drop | None:
    place, end, stands = str(piece.target), standing.end, piece.target_next or 0
    tail = await _tail(target, piece, standing) if end > standing.begin else None
    if tail is None and end > stands:
        return drop("identical.unread", piece, piece.start, place=place, at=stands, end=end)
    look = Look(at=boot_ms(), end=end, settled=True, tail=tail)
    producer = -1 if piece.producer is None else piece.producer
    # A foreign record is named before a log that is too long because of it.
    wrong = wrong_with(look, receipts_end=stands, planned_end=max(piece.end, end), producer=producer)
    match wrong or wrong_with(look, receipts_end=stands, planned_end=piece.end, producer=producer):
        case None:
            return None
        case Code.LOST:
            return drop("identical.lost", piece, piece.start, place=place, end=end, stands=stands)
        case Code.AHEAD:
            return drop("identical.ahead", piece, piece.start, place=place, end=end, planned=piece.end)
        case _:
            return drop("identical.foreign", piece, piece.start, place=place, end=end)


async def _tail(target: Cluster, piece: Slice, standing: Standing) -> Tail | None:
    last: list[Batch] = []

    def take(found: Sequence[Batch], _: Any) -> None:
        last[:] = [found[-1]]

    await read_batches(target, piece.target, standing.end - 1, standing.end, take, isolation=READ_UNCOMMITTED)
    if not last or last[0].next_offset < standing.end:
        return None
    batch = last[0]
    producer, epoch, sequence = producer_of(batch)
    own = not batch.is_control and not batch.is_transactional
    return tail_of(
        producer=producer if own else -1,
        epoch=epoch,
        sequence=sequence,
        base=batch.base_offset,
        timestamp=batch.max_timestamp,
        next_offset=batch.next_offset,
    )


@dataclass(slots=True)
class _Records:
    """The records of `[start, end)` of one side, and the batches that they came in."""

    start: int
    end: int
    batches: list[tuple[Batch, tuple[int, int, int]]] = field(default_factory=list)
    records: dict[int, bytes] = field(default_factory=dict)
    """A digest of each record by its offset."""
    epoch: int = -1

    def take(self, found: Sequence[Batch], _: Any) -> None:
        for batch in found:
            if batch.base_offset >= self.end or batch.is_control:
                continue
            self.epoch = batch.leader_epoch
            kept = batch._replace(data=memoryview(bytes(batch.data)))
            self.batches.append((kept, producer_of(batch)))
            self.records |= {one.offset: _digest(one) for one in self._of(batch)}

    def _of(self, batch: Batch) -> Iterator[Content]:
        return (one for one in contents(batch, MOST_DECOMPRESSED) if self.start <= one.offset < self.end)


def _digest(record: Content) -> bytes:
    found = hashlib.blake2b(b"%d %d" % (record.offset, record.timestamp), digest_size=16)
    for one in (record.key, record.value, record.headers):
        found.update(b"-" if one is None else b"%d:" % len(one))
        found.update(one or b"")
    return found.digest()


async def rebuilt(source: Cluster, target: Cluster, part: PartProgress, end: int) -> PartProgress:
    """Fill a part of a chunk with what is at the target from `part.start` up to `end`, and no receipt covers yet.

    A run wrote it and died before its receipt. It counts only if each record is the source's at the same offset, and
    each batch is of the lane's producer. Raises Dropped otherwise.
    """
    piece = part.piece
    theirs, ours = _Records(part.start, end), _Records(part.start, end)
    await read_batches(target, piece.target, part.start, end, ours.take, isolation=READ_UNCOMMITTED)
    await read_batches(source, piece.source, part.start, end, theirs.take, isolation=READ_UNCOMMITTED)
    place, at = str(piece.target), part.start
    for batch, (producer, epoch, sequence) in ours.batches:
        own = (producer, epoch, sequence) == (piece.producer, 0, batch.base_offset) and not batch.is_transactional
        if not own or batch.base_offset != at:
            raise Dropped([drop("identical.foreign", piece, part.start, place=place, end=end)])
        at = batch.next_offset
    for offset in range(part.start, end):
        if offset not in ours.records or ours.records[offset] != theirs.records.get(offset):
            raise Dropped([drop("identical.differs", piece, part.start, place=place, at=offset)])
    if at != end:
        raise Dropped([drop("identical.foreign", piece, part.start, place=place, end=end)])
    for batch, _ in ours.batches:
        runs = ((batch.base_offset, batch.record_count),)
        part.sent(PreparedBatch(batch, runs, batch.next_offset, theirs.epoch, False, ()))
        part.written(runs, batch.base_offset)
    return part


def advanced(todo: Mapping[Any, Slice], ends: Mapping[str, Standing]) -> list[tuple[Slice, int]]:
    """Return the slices whose copies reach further than their receipts, with their ends."""
    return [
        (piece, ends[str(piece.target)].end) for piece in todo.values() if ends[str(piece.target)].end > piece.start
    ]
