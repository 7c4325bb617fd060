"""Read the offsets of target topics that no receipt covers: markers, aborted chunks, or records of another producer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ferry.errors import Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED, FetchedPartition, fetch_request, fetched
from ferry.model import Range, RefusalKind, TopicPartition
from ferry.model.observed import Unavailable
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import batches

_GAP_BYTES = 64 << 10
"""Bytes read per gap and request, at least: gaps are markers, or chunks that were aborted."""

_ALL_BYTES = 8 << 20
"""Bytes read per request, shared by its gaps where they are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRecords:
    """Records of others: by partition (`found`) the first offset with one that no transaction aborted.

    `own` has the offset after the last batch of an own producer before that. `failed` are the partitions that could
    not be read.
    """

    found: dict[TopicPartition, int]
    own: dict[TopicPartition, int] = field(default_factory=dict)
    failed: dict[TopicPartition, Unavailable]


async def first_foreign_records(
    target: Cluster, open_parts: Mapping[TopicPartition, list[Range]], own: Collection[int] = ()
) -> ForeignRecords:
    """Read all of `open_parts`. A partition that cannot be read within the cluster's patience is failed.

    `own` are producer ids whose records do not count.
    """
    waiting = {place: list(parts) for place, parts in open_parts.items() if parts}
    result = ForeignRecords(found={}, failed={})
    while waiting:
        at = {place: parts[0][0] for place, parts in waiting.items()}
        outside: list[TopicPartition] = []
        try:
            answers = await target.retrying(partial(_read, target, at))
        except Unreachable as error:
            if not isinstance(error.__cause__, _Unread):
                raise
            for place in error.__cause__.places:
                result.failed[place] = Unavailable(kind=RefusalKind.NO_LEADER, why=f"{error}")
                del waiting[place]
            continue
        for part in answers:
            if part.error_code in codes.UNAUTHORIZED:
                result.failed[part.place] = _denied(target, part.place)
                del waiting[part.place]
                continue
            parts = waiting[part.place]
            # retention was faster: what is gone belongs to no producer
            if part.error_code == codes.OFFSET_OUT_OF_RANGE:
                outside.append(part.place)
                continue
            first, seen, own_end = _judged(part, parts, own)
            if own_end is not None:
                result.own[part.place] = own_end
            if first is not None:
                result.found[part.place] = first
                parts.clear()
            _leave_out(waiting, part.place, seen)
        begins = await listed_offsets(target, dict.fromkeys(outside, EARLIEST), isolation=READ_UNCOMMITTED)
        for place in outside:
            begin = begins.found.get(place, -1)
            if begin <= at[place]:
                nobody = f"{place} on cluster {target.alias} does not show offset {at[place]}: look at its brokers"
                result.failed[place] = begins.failed.get(place, Unavailable(kind=RefusalKind.NO_LEADER, why=nobody))
                del waiting[place]
            else:
                _leave_out(waiting, place, begin)
    return result


def _leave_out(waiting: dict[TopicPartition, list[Range]], place: TopicPartition, seen: int) -> None:
    """Take what is before `seen` off the list: it is judged."""
    parts = waiting[place] = [(max(low, seen), high) for low, high in waiting[place] if high > seen]
    if not parts:
        del waiting[place]


def _denied(target: Cluster, place: TopicPartition) -> Unavailable:
    return Unavailable(
        kind=RefusalKind.NOT_AUTHORIZED,
        why=f"topic {place.topic} may not be read on cluster {target.alias}: grant READ on it",
    )


class _Unread(Retryable):
    """These partitions could not be read."""

    def __init__(self, message: str, places: Iterable[TopicPartition]) -> None:
        super().__init__(message)
        self.places = tuple(places)


async def _read(target: Cluster, at: Mapping[TopicPartition, int]) -> list[FetchedPartition]:
    """Fetch the first partition, and others that its leader has; those with errors wait until they are the first."""
    first = next(iter(at))
    try:
        leader = target.leader(first)
        offsets = {place: offset for place, offset in at.items() if _is_led(target, place, leader)}
    except Retryable as error:
        await target.refresh({first.topic})
        raise _Unread(str(error), [first]) from error
    request = fetch_request(
        target,
        offsets,
        isolation=READ_COMMITTED,
        max_bytes=max(_ALL_BYTES, len(offsets) * _GAP_BYTES),
        partition_bytes=max(_GAP_BYTES, _ALL_BYTES // len(offsets)),
        max_wait_ms=200,
    )
    try:
        parts = list(fetched(request, await target.ask(request, leader)))
    except Retryable as error:
        await target.refresh({place.topic for place in offsets})
        raise _Unread(str(error), offsets) from error
    for part in parts:
        if part.place != first:
            continue
        if not part.error_code and not part.records:
            raise _Unread(f"{first} on cluster {target.alias} does not show offset {offsets[first]}", [first])
        if part.error_code and part.error_code not in _TOLD:
            await target.refresh({first.topic})
            raise _Unread(f"{first} on cluster {target.alias}: {codes.advised(part.error_code)}", [first])
    return [part for part in parts if not part.error_code or part.error_code in _TOLD]


_TOLD = codes.UNAUTHORIZED | {codes.OFFSET_OUT_OF_RANGE}
"""Errors that are answers: a repeat changes nothing."""


def _is_led(target: Cluster, place: TopicPartition, leader: int) -> bool:
    info = target.topics.get(place.topic)
    partition = info.partitions.get(place.partition) if info is not None else None
    return partition is not None and partition.leader == leader


def _judged(
    part: FetchedPartition, open_parts: Iterable[Range], own: Collection[int]
) -> tuple[int | None, int, int | None]:
    """Return the first offset of a live record in one of `open_parts`, and the offset up to which the answer decides.

    The third value is the offset after the last batch of `own` there; None: there is none.

    A partition that is not the first of a request may come without a whole batch: then nothing is judged.
    """
    seen = min(low for low, _ in open_parts)
    own_end = None
    aborted = AbortedTransactions()
    aborted.learn(part.aborted)
    for batch in batches(part.records):
        seen = batch.next_offset
        if aborted.leaves_out(batch):  # also of a batch outside of the parts: its marker may end a transaction
            continue
        for low, high in open_parts:
            if batch.base_offset < high and low < batch.next_offset:
                if batch.producer_id not in own:
                    return max(low, batch.base_offset), seen, own_end
                own_end = min(high, batch.next_offset)
    return None, seen, own_end
