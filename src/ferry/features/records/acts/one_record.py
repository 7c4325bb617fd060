"""Reads one record on both sides of a flow, by the offset map of the lane. At most one batch of each side.

A side is read over connections of its own call, with one request at a time: `ferry.kafka.fetch.one_partition` bounds an
answer, and `MOST_DECOMPRESSED` what a batch may take. Of the record, only what is shown is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ferry.config.flow.flow import FlowConfig, refuse_foreign_topic
from ferry.errors import BadInput, Corrupt, FerryError, Refused
from ferry.features.groups.acts.translate import translate_over
from ferry.features.groups.rules.offset_map import Exact
from ferry.features.groups.rules.translation import Translation
from ferry.features.records.rules.one_record import (
    BothSides,
    Lack,
    OneRecord,
    Side,
    StampedBy,
    hole,
    in_gap,
    lack_of,
)
from ferry.kafka.admin.topic_settings import topic_settings
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections, TargetFirst
from ferry.ledger.ledger import gaps
from ferry.model import Gap, TopicPartition
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import ABORT_MARKER, COMMIT_MARKER, Batch, check, marker_type
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.content import MOST_DECOMPRESSED, contents
from ferry.wire.headers import parse_headers

LOOK_SECONDS = 20.0
"""How long it may take once the clusters answer."""
_CLEANUP = "cleanup.policy"
_MARKERS = {COMMIT_MARKER: "commit marker", ABORT_MARKER: "abort marker"}


def look_at(
    flow: FlowConfig, place: TopicPartition, offset: int, *, backward: bool = False, patience_s: float = 60.0
) -> BothSides:
    """Return the record at a source offset and its copy; `backward`: the record at a target offset and its original.

    Only topics that the flow copies are read. Raises BadInput for another topic, and for a target partition that the
    lane has not written. Raises Refused if no offset map leads back from a target offset. Raises Unreachable without
    the target, or if it takes longer than LOOK_SECONDS.
    """
    if not backward:
        refuse_foreign_topic(flow, place.topic)
    with TargetFirst.of(flow, patience_s=patience_s) as connection:
        work = partial(_look, connection, flow, place, offset, backward)
        return connection.run(partial(connection.target.within, LOOK_SECONDS, work))


async def _look(
    connection: TargetFirst, flow: FlowConfig, place: TopicPartition, offset: int, backward: bool
) -> BothSides:
    """Translate the offset, then read both sides."""
    if backward:
        led = await translate_over(connection, flow, place, offset, True)
        refuse_foreign_topic(flow, led.source.topic)
        target = await _side(connection, connection.target, place, offset)
        transformed = _is_transformed(flow, led.source.topic)
        source = await _other(connection, connection.source, led, led.source, target, (), transformed)
        return BothSides(source=source, target=target, transformed=transformed)
    source = await _side(connection, connection.source, place, offset)
    transformed = _is_transformed(flow, place.topic)
    try:
        led = await translate_over(connection, flow, place, offset, False)
        passed = [one for one in gaps(await connection.view(), flow.lane) if one.source == place]
    except (BadInput, Refused) as error:
        target = Side(place=None, offset=None, lack=Lack.UNMAPPED, detail=str(error))
        return BothSides(source=source, target=target, transformed=transformed)
    covering = [one for one in passed if one.start <= offset < one.end]
    target = await _other(connection, connection.target, led, led.target, source, covering, transformed)
    return BothSides(source=source, target=target, transformed=transformed)


def _is_transformed(flow: FlowConfig, topic: str) -> bool:
    try:
        return flow.transform_of(topic) is not None
    except Refused:  # two transforms name it: no run copies it with either
        return True


async def _other(
    connection: TargetFirst,
    cluster: Cluster,
    led: Translation,
    place: TopicPartition,
    asked: Side,
    covering: Sequence[Gap],
    transformed: bool,
) -> Side:
    """Return what the side has that an offset was translated to; `covering` are the lane's gaps at the offset."""
    outcome = led.outcome
    lack = lack_of(
        outcome.word,
        read_all=isinstance(outcome, Exact) and outcome.read_all,
        pruned=led.pruned is not None,
    )
    if lack is None:
        return await _side(connection, cluster, place, outcome.offset)
    lack, detail = in_gap(asked, lack, covering[-1] if covering else None, transformed=transformed)
    return Side(place=place, offset=None, lack=lack, detail=detail)


async def _side(connection: FlowConnections, cluster: Cluster, place: TopicPartition, offset: int) -> Side:
    """Read what a cluster has at an offset; what keeps it from being read is a sentence."""
    if isinstance(connection, TargetFirst) and cluster.alias in connection.down:
        why = str(connection.down[cluster.alias])
        return Side(place=place, offset=offset, lack=Lack.UNREADABLE, detail=why)
    try:
        return await read_one(cluster, place, offset)
    except FerryError as error:
        return Side(place=place, offset=offset, lack=Lack.UNREADABLE, detail=str(error))


async def read_one(cluster: Cluster, place: TopicPartition, offset: int) -> Side:
    """Return what a partition has at an offset, as a read_committed consumer sees it, or why there is nothing.

    Raises Refused when the topic may not be read, Unreachable when its leader does not answer.
    """
    begins, stable, ends = [
        await listed_offsets(cluster, {place: which}, isolation=isolation)
        for which, isolation in (
            (EARLIEST, READ_UNCOMMITTED),
            (LATEST, READ_COMMITTED),
            (LATEST, READ_UNCOMMITTED),
        )
    ]
    here = Side(place=place, offset=offset)
    if any(place not in one.found for one in (begins, stable, ends)):
        failed = [one.failed[place].why for one in (begins, stable, ends) if place in one.failed]
        why = failed[0] if failed else "it is not there, or has no leader"
        return replace(here, lack=Lack.UNREADABLE, detail=f"{place} on cluster {cluster.alias} cannot be read: {why}")
    here = replace(here, bounds=(begins.found[place], ends.found[place]))
    if offset < begins.found[place]:
        return replace(here, lack=Lack.DELETED)
    if offset >= ends.found[place]:
        return replace(here, lack=Lack.NOT_WRITTEN)
    if offset >= stable.found[place]:
        return replace(here, lack=Lack.OPEN)
    search = _Search(here, place, offset)
    await read_batches(cluster, place, offset, offset + 1, search.take, isolation=READ_COMMITTED)
    if search.found is not None:
        return search.found
    lack, detail = hole(await _cleanup_policy(cluster, place.topic))
    return replace(here, lack=lack, detail=detail)


class _Search:
    """The search for one offset in the batches of an answer: what it has found, or None for nothing at the offset."""

    def __init__(self, here: Side, place: TopicPartition, offset: int) -> None:
        self.found: Side | None = None
        self._here, self._place, self._offset = here, place, offset
        self._aborted = AbortedTransactions()

    def take(self, found: Sequence[Batch], part: Any) -> int | None:
        """Judge the first batch that reaches the offset; return the offset after it, so that no more is read."""
        self._aborted.learn(part.aborted)
        for batch in found:
            if batch.next_offset <= self._offset:
                continue
            if batch.base_offset <= self._offset or batch.is_wrapper:
                self.found = self._judged(batch)
            return self._offset + 1
        return None

    def _judged(self, batch: Batch) -> Side | None:
        here = self._here
        try:
            check(batch, *self._place)
            left_out = self._aborted.leaves_out(batch)
            if batch.is_control:
                kind = _MARKERS.get(marker_type(batch), "marker")
                return replace(here, lack=Lack.CONTROL, detail=f"the {kind} of a transaction")
            record = self._record(batch)
        except (Corrupt, Malformed, TooLong) as error:
            why = f"the batch at offset {batch.base_offset} of {self._place} cannot be read: {error}"
            return replace(here, lack=Lack.UNREADABLE, detail=why)
        if record is None:
            return None
        return replace(here, lack=Lack.ABORTED) if left_out else replace(here, record=record)

    def _record(self, batch: Batch) -> OneRecord | None:
        stamped = StampedBy.APPEND if batch.has_log_append_time else StampedBy.CREATE
        if not batch.magic:
            stamped = StampedBy.NONE
        for one in contents(batch, MOST_DECOMPRESSED):
            if one.offset == self._offset:
                return OneRecord.of(one.timestamp, stamped, one.key, one.value, parse_headers(one.headers))
        return None


async def _cleanup_policy(cluster: Cluster, topic: str) -> str | None:
    """Return how a topic is cleaned up; None: that may not be seen."""
    listed = await topic_settings(cluster, [topic], names=[_CLEANUP])
    settings = listed.found.get(topic)
    if settings is None:
        return None
    inherited = settings.inherited.get(_CLEANUP)
    return settings.own.get(_CLEANUP) or (None if inherited is None else inherited.value)
