"""Offsets of a target partition that get no record: empty ones are written there in bulk, and deleted afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest

from ferry.clock import wall_ms
from ferry.copy.chunk import PartProgress
from ferry.copy.dropped import answered_drop, leader_of
from ferry.copy.part import Part
from ferry.copy.prepared_batch import PreparedBatch
from ferry.copy.produce_queue import Entry, Request
from ferry.errors import Retryable
from ferry.features.identical.acts.copier import OneByOne
from ferry.features.identical.acts.data_writer import DataWriter
from ferry.features.identical.rules.empty import at_once, empty_batch
from ferry.features.identical.rules.stamped import sequence_of
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.model import Origin, Plan, Slice, TopicPartition
from ferry.protocol.drops import Drop, drop, verdict
from ferry.wire.batch import batches

MOST_PARTITIONS = 32
"""Partitions of one request: a broker opens all batches of it before it answers."""
_TIMEOUT_MS = 20_000
"""How long a broker may try. The client's `request.timeout.ms` is longer, so that the answer names the partition."""


class _Empty(OneByOne):
    """Sends empty records."""

    def _misplaced(self, part: Part, out: PreparedBatch, base: int) -> Drop | None:
        if super()._misplaced(part, out, base) is None:
            return None
        place = str(part.piece.target)
        return drop("identical.shifted.empty", part.piece, out.start, place=place, at=out.start, base=base)


async def pass_over(
    target: Cluster,
    writer: DataWriter,
    plan: Plan,
    origin: Origin,
    todo: Mapping[TopicPartition, tuple[Slice, int]],
    limits: Mapping[str, int],
    stop: Callable[[], bool],
) -> frozenset[TopicPartition]:
    """Write empty records up to where each slice begins; return the partitions that reach it.

    `todo` has slices, and where their partitions end, by target partition. `limits` are `max.message.bytes` by topic.
    `stop`: whether to end early; then the rest is not returned. Raises Dropped, Blocked and Retryable as the queue of
    records does.
    """
    queue = _Empty(target, writer, lambda: None)
    ends = {place: end for place, (_, end) in todo.items()}
    left = sorted(todo)
    while left and not stop():
        for node, places in _by_leader(target, {place: todo[place][0] for place in left}).items():
            request, now = Request(), wall_ms()
            for place in places[:MOST_PARTITIONS]:
                piece, at = todo[place][0], ends[place]
                count = min(at_once(limits.get(place.topic)), piece.start - at)
                data = empty_batch(sequence_of(at), count, producer=writer.producers[place], at_ms=now)
                ends[place] = at + count
                request.add(Entry(_part(plan, origin, piece, at), _prepared(data, at, count)), memoryview(data))
            await queue.send_first(node, request)
        left = [place for place in left if ends[place] < todo[place][0].start]
    return frozenset(todo) - frozenset(left)


def _by_leader(target: Cluster, pieces: Mapping[TopicPartition, Slice]) -> dict[int, list[TopicPartition]]:
    """Return the partitions of each leader. Raises Blocked where one has no leader."""
    found: dict[int, list[TopicPartition]] = {}
    for place, piece in pieces.items():
        found.setdefault(leader_of(target, piece, piece.start), []).append(place)
    return found


def _part(plan: Plan, origin: Origin, piece: Slice, at: int) -> PartProgress:
    return PartProgress(plan=plan, origin=origin, piece=piece, start=at, end=at, target_next=at, aged=False)


def _prepared(data: bytearray, at: int, count: int) -> PreparedBatch:
    return PreparedBatch(next(batches(data)), ((at, count),), at + count, -1, False, ())


async def delete_before(target: Cluster, pieces: Mapping[TopicPartition, tuple[Slice, int]]) -> None:
    """Move the log start of target partitions up to an offset; nothing where it is there already.

    `pieces` has slices and offsets by target partition. Raises Dropped where it is not permitted, Blocked where a
    broker cannot do it now, and Retryable for other errors.
    """
    drops: list[Drop] = []
    topic = DeleteRecordsRequest.DeleteRecordsTopic
    for node, places in _by_leader(target, {place: pieces[place][0] for place in sorted(pieces)}).items():
        by_topic: dict[str, list[Any]] = {}
        for place in places:
            one = topic.DeleteRecordsPartition(partition_index=place.partition, offset=pieces[place][1])
            by_topic.setdefault(place.topic, []).append(one)
        topics = [topic(name=name, partitions=parts) for name, parts in by_topic.items()]
        answer = await target.ask(DeleteRecordsRequest(topics=topics, timeout_ms=_TIMEOUT_MS), node)
        for found in answer.topics:
            for part in found.partitions:
                place = TopicPartition(topic=found.name, partition=part.partition_index)
                drops += _against(target, pieces[place][0], part.error_code)
    if drops:
        raise verdict(drops)


def _against(target: Cluster, piece: Slice, code: int) -> list[Drop]:
    if not code:
        return []
    found = answered_drop(piece, piece.start, code, target.alias, "delete empty records of", "DELETE")
    if found is None:
        raise Retryable(f"deleting empty records of {piece.target}: {codes.describe(code)}")
    return [found]
