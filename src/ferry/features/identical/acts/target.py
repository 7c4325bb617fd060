"""What the target shows before a slot writes: where its logs begin and end, and the last batch."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest

from ferry.clock import boot_ms
from ferry.copy.dropped import answered_drop
from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.features.identical.acts.data_writer import Reading
from ferry.features.identical.rules.marked import next_sequence
from ferry.features.identical.rules.stamped import tail_of, wrong_with
from ferry.features.identical.rules.values import Code, Look, Tail
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, LEADER_LOG, listed_offsets
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import RefusalKind, Slice, TopicPartition
from ferry.protocol.drops import Drop, drop, verdict
from ferry.wire.batch import Batch, producer_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a target partition ends, settled, and where its log begins.

    `sequence` is the sequence number of the next record. `state_ms` is the last timestamp of the producer state that
    wants it; 0 if there is none.
    """

    begin: int
    reading: Reading
    sequence: int
    state_ms: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.reading.end


async def standings(
    target: Cluster, todo: Iterable[Slice], planned: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Standing]:
    """Return by target partition where its log begins and ends.

    `planned` is where the run's plan has each end. Raises Dropped if something else than this lane's records is at the
    end, or fewer than receipts show. Raises Blocked if a leader does not answer, or its log has more than the replicas
    in sync. Raises Retryable if a leader changed meanwhile.
    """
    pieces = {piece.target: piece for piece in todo}
    at, nodes = boot_ms(), leaders_of(target, pieces)
    begins = await listed_offsets(target, dict.fromkeys(pieces, EARLIEST), isolation=READ_UNCOMMITTED)
    states: dict[TopicPartition, tuple[int, int]] = {}
    counted = [place for place, piece in pieces.items() if piece.marked_ms is not None]

    async def read_states() -> None:
        for node in {nodes[place] for place in counted if place in nodes}:
            some = [place for place in counted if nodes.get(place) == node]
            states.update(await producer_states(target, node, {place: pieces[place].producer for place in some}))

    ends = await settled_ends(target, pieces, nodes, read_states)
    drops: list[Drop] = [*ends.drops]
    found: dict[TopicPartition, Standing] = {}
    for place, end in ends.found.items():
        piece = pieces[place]
        if place not in begins.found:
            drops.append(_silent(target, piece))
            continue
        wanted, state_ms = states.get(place, (None, 0))
        look = Look(at=at, end=end, settled=True, tail=None, state_sequence=wanted, state_ms=state_ms)
        standing = Standing(
            begin=begins.found[place],
            reading=Reading(end=end, at=at, node=nodes[place]),
            sequence=next_sequence(look),
            state_ms=state_ms,
        )
        try:
            wrong = await _wrong(target, piece, standing, planned[place])
        except (Retryable, Unreachable) as error:
            wrong = _unseen(target, piece, error)
        except Refused:
            wrong = answered_drop(piece, piece.start, codes.TOPIC_AUTHORIZATION_FAILED, target.alias, "read", "READ")
        if wrong is not None:
            drops.append(wrong)
        else:
            found[place] = standing
    if drops:
        raise verdict(drops)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledEnds:
    """Where partitions end, and why others do not show it now."""

    found: Mapping[TopicPartition, int]
    drops: Sequence[Drop]


async def producer_states(
    target: Cluster, node: int, producers: Mapping[TopicPartition, int | None]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the sequence numbers that a broker wants next, and the last timestamps of these states.

    Partitions of which it has no state are left out.

    A broker that does not lead answers, too. So its end is to be the same, as it shows as the leader, before and
    afterwards. Raises Retryable on errors.
    """
    topic = DescribeProducersRequest.TopicRequest
    by_topic: dict[str, list[int]] = {}
    for place in sorted(producers):
        by_topic.setdefault(place.topic, []).append(place.partition)
    topics = [topic(name=name, partition_indexes=numbers) for name, numbers in by_topic.items()]
    answer = await target.ask(DescribeProducersRequest(topics=topics), node)
    found: dict[TopicPartition, tuple[int, int]] = {}
    shown: set[TopicPartition] = set()
    for row in answer.topics:
        for part in row.partitions:
            place = TopicPartition(topic=row.name, partition=part.partition_index)
            if part.error_code:
                raise Retryable(f"the producers of {place}: {codes.advised(part.error_code)}")
            shown.add(place)
            for one in part.active_producers:
                if one.producer_id == producers.get(place):
                    found[place] = one.last_sequence + 1, one.last_timestamp
    if shown != producers.keys():
        raise Retryable(f"broker {node} of cluster {target.alias} does not show the producers of all partitions")
    return found


async def settled_ends(
    target: Cluster,
    pieces: Mapping[TopicPartition, Slice],
    nodes: Mapping[TopicPartition, int],
    between: Callable[[], Awaitable[None]] | None = None,
) -> SettledEnds:
    """Return the ends that the leaders `nodes` show, and all replicas in sync have.

    `between` reads what belongs to the ends: these are equal before it and afterwards.
    """
    wanted = dict.fromkeys(pieces, LATEST)
    # No metadata first: a broker that leads no more answers with an error, or is the one that is written to.
    shown = await listed_offsets(target, wanted, isolation=READ_UNCOMMITTED, leaders_known=True)
    if between is not None:
        await between()
    logs = await listed_offsets(target, wanted, isolation=READ_UNCOMMITTED, replica=LEADER_LOG, leaders_known=True)
    now = leaders_of(target, pieces)
    drops: list[Drop] = []
    found: dict[TopicPartition, int] = {}
    for place, piece in pieces.items():
        if place not in now:
            why = f"{place} has no leader on cluster {target.alias}"
            drops.append(drop("target.leaderless", piece, piece.start, passing=True, why=why))
        elif now[place] != nodes.get(place):
            raise Retryable(f"the leader of {place} changed while its end was read: it is read again")
        elif place not in shown.found or place not in logs.found:
            drops.append(_silent(target, piece))
        elif shown.found[place] != logs.found[place]:
            drops.append(_unsettled(piece, logs.found[place], shown.found[place]))
        else:
            found[place] = shown.found[place]
    return SettledEnds(found=found, drops=drops)


def leaders_of(target: Cluster, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the leaders of the partitions that have one."""
    found = {}
    for place in places:
        with suppress(Retryable):
            found[place] = target.leader(place)
    return found


def _silent(target: Cluster, piece: Slice) -> Drop:
    place = str(piece.target)
    return drop("target.silent", piece, piece.start, passing=True, place=place, cluster=target.alias)


def _unseen(target: Cluster, piece: Slice, error: FerryError) -> Drop:
    place, kind, why = str(piece.target), RefusalKind.NO_LEADER, str(error)
    return drop(
        "target.unseen", piece, piece.start, kind=kind, passing=True, place=place, cluster=target.alias, why=why
    )


def _unsettled(piece: Slice, end: int, shown: int) -> Drop:
    place = str(piece.target)
    return drop("identical.unsettled", piece, piece.start, passing=True, place=place, end=end, shown=shown)


async def read_again(
    target: Cluster, pieces: Mapping[TopicPartition, Slice], known: Mapping[TopicPartition, Reading]
) -> dict[TopicPartition, Reading]:
    """Return the readings of this moment, of some of `pieces` (by target partition).

    Raises Retryable if a log ends elsewhere than it is known to end. Raises Blocked for those that do not show it now.
    """
    at, nodes = boot_ms(), leaders_of(target, known)
    ends = await settled_ends(target, {place: pieces[place] for place in known}, nodes)
    for place, end in ends.found.items():
        if end != known[place].end:
            raise Retryable(f"{place} ended at offset {known[place].end}, and ends at {end} now: it is read again")
    if ends.drops:
        raise verdict(ends.drops)
    return {place: Reading(end=end, at=at, node=nodes[place]) for place, end in ends.found.items()}


async def _wrong(target: Cluster, piece: Slice, standing: Standing, planned: int) -> Drop | None:
    place, begin, end, stands = str(piece.target), standing.begin, standing.end, piece.target_next or 0
    if end == piece.continued_at and end >= stands:  # other producers wrote all that is there
        return None
    tail = await _tail(target, piece, standing) if end > begin else None
    if tail is None and end > stands:
        return drop("identical.unread", piece, piece.start, place=place, at=stands, begin=end, end=end)
    look = Look(at=boot_ms(), end=end, settled=True, tail=tail)
    producer = -1 if piece.producer is None else piece.producer
    # A foreign record is named before a log that is too long because of it.
    wrong = wrong_with(look, receipts_end=stands, planned_end=max(planned, end), producer=producer)
    match wrong or wrong_with(look, receipts_end=stands, planned_end=planned, producer=producer):
        case None:
            return None
        case Code.LOST:
            return drop("identical.lost", piece, piece.start, place=place, end=end, stands=stands)
        case Code.AHEAD:
            return drop("identical.ahead", piece, piece.start, place=place, end=end, planned=planned)
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
    counted = piece.marked_ms is not None
    if batch.is_control and producer == piece.producer and not counted and piece.late_ms is not None:
        raise Retryable("it ends with a marker of this lane, and the ledger does not show yet that it sends some there")
    own = counted if batch.is_control else not batch.is_transactional
    return tail_of(
        producer=producer if own else -1,
        epoch=epoch,
        sequence=sequence,
        base=batch.base_offset,
        timestamp=batch.max_timestamp,
        next_offset=batch.next_offset,
        counted=counted,
    )


def advanced(todo: Iterable[Slice], ends: Mapping[TopicPartition, Standing]) -> list[tuple[Slice, Standing]]:
    """Return the slices whose copies reach further than their receipts, with what the target shows of them."""
    return [(piece, ends[piece.target]) for piece in todo if ends[piece.target].end > piece.start]
