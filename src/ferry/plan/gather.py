"""Gather the facts that a plan is decided from."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import Enum

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.start import Start, StartEarliest, StartLatest, StartOffsets, StartTime
from ferry.errors import MALFORMED, Unreachable
from ferry.kafka.admin.disks import log_sizes
from ferry.kafka.admin.topic_settings import topic_settings_each
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, ListedOffsets, group_offsets, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.kafka.produce.open_transactions import open_transactions
from ferry.ledger.ledger import LedgerView, claims, pauses, skips
from ferry.ledger.producer_codec import receipts_of_now
from ferry.ledger.unit_codec import eras, last_units
from ferry.ledger.units import least_dealt
from ferry.model import Position, Receipt, RefusalKind, TopicPartition
from ferry.model.observed import Unavailable
from ferry.model.topic_settings import TopicSettings
from ferry.plan.found_nothing import found_nothing
from ferry.plan.gather_targets import gather_targets
from ferry.plan.rules.absence import absent_topics, unmatched_names
from ferry.plan.rules.facts import (
    Facts,
    LaneFacts,
    SourceFacts,
    SourcePartition,
    SourceTopic,
    TargetFacts,
    TargetTopic,
    by_topic,
)
from ferry.plan.rules.starts import due_starts, first_run, recorded_starts, starts_at_time, unasked_starts
from ferry.plan.rules.tombstones import seen_to_end
from ferry.protocol.names import position_group
from ferry.wire.batch import if_known


def isolation_of(flow: FlowConfig) -> int:
    """Return the flow's isolation level as Kafka's number."""
    return READ_COMMITTED if flow.copy.isolation_level == "read_committed" else READ_UNCOMMITTED


class Positions(Enum):
    """How the position group is asked. It is a hint: only a run that has fenced all writers may wait for an answer."""

    SETTLED = "settled"
    """Wait until no transaction is pending: after the fencing that is at once."""
    AT_ONCE = "at once"
    """Leave out pending positions: the transaction of a dead writer ends only after its timeout."""
    NONE = "none"
    """Do not ask."""


async def gather_facts(
    flow: FlowConfig,
    lane: str,
    source: Cluster,
    target: Cluster,
    view: LedgerView,
    *,
    positions: Positions = Positions.SETTLED,
) -> Facts:
    """Gather the facts of both clusters, and of the ledger as far as `view` has read it."""
    asked_ms = wall_ms()
    listed = await source.refresh(None)
    chosen = {name: info for name, info in listed.items() if flow.topics.selection.takes(name)}
    receipts, units = receipts_of_now(view, lane), last_units(view, lane)
    places = {
        TopicPartition(topic=name, partition=part.partition)
        for name, info in chosen.items()
        for part in info.partitions.values()
        if part.leader >= 0
    }
    # Partitions that failed once are not asked again: each question to a silent broker takes the whole patience.
    begins = await listed_offsets(source, dict.fromkeys(places, EARLIEST), isolation=READ_UNCOMMITTED)
    ends = await listed_offsets(source, dict.fromkeys(begins.found, LATEST), isolation=isolation_of(flow))
    highs = await _high_watermarks(flow, source, ends.found)
    held = await open_transactions(source, [place for place, high in highs.items() if high > ends.found[place]])
    is_first, rules = first_run(view, lane), eras(view, lane)
    ids = {name: info.id_text for name, info in chosen.items()}
    begun = recorded_starts(view, lane, ids)
    if is_first:
        starts = await _first_starts(flow.copy.start, source, begins.found, ends.found)
        there = {
            TopicPartition(topic=name, partition=number) for name, info in chosen.items() for number in info.partitions
        }
        begun = unasked_starts(flow.copy.start, there - starts.found.keys(), asked_ms)
    else:
        due = due_starts(begun.pending, ends.found, {last.source for last in receipts.values()})
        starts = await _later_starts(due, source, begins.found, ends.found)
        begun = begun.settled({place: starts.found[place] for place in due.keys() & starts.found.keys()})
    known = ends.found.keys() & starts.found.keys()
    unserved = by_topic(begins.failed | ends.failed | starts.failed)
    sizes = await log_sizes(source)
    settings = await topic_settings_each(source, sorted(chosen))
    absent = absent_topics([*receipts.values(), *units.values()], listed, flow.topics.selection.takes)
    taken = chosen.keys() | absent
    copies = await gather_targets(flow, target, taken, rules.values())
    # A broker omits topics that this login may not see from a full list, but reports them when asked by name.
    unmatched = unmatched_names(flow.topics.filter.include, listed)
    hidden = await source.hidden(unmatched)
    now_ms = wall_ms()
    topics = {
        name: SourceTopic(
            name=name,
            topic_id=info.id_text,
            partitions={
                place.partition: SourcePartition(
                    log_start=begins.found[place],
                    end=ends.found[place],
                    size_bytes=sizes.get(place),
                    start=starts.found[place],
                    high_watermark=highs.get(place),
                    leader_epoch=_leader_epoch(source, place),
                )
                for place in (TopicPartition(topic=name, partition=number) for number in info.partitions)
                if place in known
            },
            # Also partitions whose leader was lost between two answers: left out of both, they would be skipped.
            leaderless=tuple(
                number
                for number in sorted(info.partitions)
                if TopicPartition(topic=name, partition=number) not in known
            ),
            replication_factor=max((len(part.replicas) for part in info.partitions.values()), default=1),
            unserved=unserved.get(name, {}),
            settings=None
            if name in settings.denied or name in settings.failed
            else settings.found.get(name, TopicSettings()),
            settings_error=settings.failed.get(name, ""),
        )
        for name, info in chosen.items()
    }
    return Facts(
        now_ms=now_ms,
        source=SourceFacts(
            cluster_id=source.cluster_id,
            topics=topics,
            absent=absent,
            hidden=hidden,
            unmatched=unmatched,
            unfound=await found_nothing(flow, source, target),
            open_transactions={place: begun[0] for place, begun in held.items() if begun},
        ),
        target=copies,
        lane=LaneFacts(
            receipts=receipts,
            units=units,
            positions=await _positions(
                flow, lane, target, _written(receipts, taken, copies) | _filled(flow, chosen, copies.topics), positions
            ),
            starts=begun.offsets,
            pending=begun.pending,
            first_run=is_first,
            skips=skips(view, lane),
            seen=seen_to_end(view, lane, ids),
            claims=claims(view),
            pauses=pauses(view, wall_ms()),
            eras=rules,
            dealt=least_dealt(rules.values(), units.values()),
        ),
    )


def _leader_epoch(cluster: Cluster, place: TopicPartition) -> int | None:
    info = cluster.topics.get(place.topic)
    found = None if info is None else info.partitions.get(place.partition)
    return None if found is None else if_known(found.leader_epoch)


async def gather_outline(flow: FlowConfig, lane: str, source: Cluster, target: Cluster, view: LedgerView) -> Facts:
    """Gather the facts without partitions, settings and target topics: enough to find what refuses any plan, cheaply.

    Nothing in it depends on fencing, so a run can be judged before it is opened.
    """
    listed = await source.refresh(None)
    receipts, units = receipts_of_now(view, lane), last_units(view, lane)
    now_ms = wall_ms()
    return Facts(
        now_ms=now_ms,
        source=SourceFacts(
            cluster_id=source.cluster_id,
            topics={
                name: SourceTopic(
                    name=name,
                    topic_id=info.id_text,
                    partitions={},
                    leaderless=(),
                    replication_factor=1,
                    settings=TopicSettings(),
                )
                for name, info in listed.items()
                if flow.topics.selection.takes(name)
            },
            absent=absent_topics([*receipts.values(), *units.values()], listed, flow.topics.selection.takes),
        ),
        target=TargetFacts(cluster_id=target.cluster_id, brokers=len(target.brokers), topics={}),
        lane=LaneFacts(
            receipts=receipts,
            units=units,
            positions={},
            starts=recorded_starts(view, lane, {name: info.id_text for name, info in listed.items()}).offsets,
            first_run=first_run(view, lane),
            claims=claims(view),
            pauses=pauses(view, now_ms),
            eras=eras(view, lane),
        ),
    )


async def with_deleted(flow: FlowConfig, facts: Facts, source: Cluster) -> SourceFacts:
    """Return the source's facts with which absent topics were deleted; asked only if the flow follows deletions."""
    ids = {
        last.source.topic: last.source_topic_id
        for last in facts.lane.receipts.values()
        if last.source.topic in facts.source.absent and last.source_topic_id
    }
    deleted = await source.deleted(ids) if flow.topics.sync_topic_deletes and ids else frozenset()
    return replace(facts.source, deleted=deleted)


async def _high_watermarks(
    flow: FlowConfig, source: Cluster, places: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the ends of logs including what open transactions hold back; empty for a flow that reads uncommitted.

    The ends serve notes and lag only, so an error is not waited for.
    """
    if isolation_of(flow) == READ_UNCOMMITTED:
        return {}
    try:
        return (await listed_offsets(source, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)).found
    except Unreachable:
        return {}


async def _first_starts(
    start: Start, source: Cluster, begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> ListedOffsets:
    """Return the configured start of each partition that has an end."""
    match start:
        case StartEarliest():
            return ListedOffsets(found={place: begins[place] for place in ends}, failed={})
        case StartLatest():
            return ListedOffsets(found=dict(ends), failed={})
        case StartOffsets(offsets=offsets):
            return ListedOffsets(found={place: offsets.get(place, begins[place]) for place in ends}, failed={})
        case StartTime(timestamp_ms=timestamp):
            listed = await listed_offsets(source, dict.fromkeys(ends, timestamp), isolation=READ_UNCOMMITTED)
            return ListedOffsets(found=starts_at_time(listed.found, ends), failed=listed.failed)


async def _later_starts(
    due: Mapping[TopicPartition, int],
    source: Cluster,
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> ListedOffsets:
    """Return where a later run may begin each partition: `due` ones at their time, all others at their log start."""
    others = {place: begins[place] for place in begins.keys() - due.keys()}
    if not due:
        return ListedOffsets(found=others, failed={})
    try:
        listed = await listed_offsets(source, due, isolation=READ_UNCOMMITTED)
    except Unreachable as error:
        # The cluster has just reported the ends: only the leaders of these few partitions were lost.
        why = f"its start cannot be asked for: {error}"
        return ListedOffsets(found=others, failed=dict.fromkeys(due, Unavailable(kind=RefusalKind.NO_LEADER, why=why)))
    return ListedOffsets(found=others | starts_at_time(listed.found, ends), failed=listed.failed)


def _written(
    receipts: Mapping[TopicPartition, Receipt], names: Collection[str], copies: TargetFacts
) -> frozenset[TopicPartition]:
    """Return the target partitions with a receipt whose source topic is among `names`, and whose copy is not hidden."""
    return frozenset(
        place for place, last in receipts.items() if last.source.topic in names and place.topic not in copies.hidden
    )


def _filled(flow: FlowConfig, names: Collection[str], targets: Mapping[str, TargetTopic]) -> frozenset[TopicPartition]:
    """Return the partitions of copies that hold records: the lane may have positions there without any receipt."""
    copies = (targets.get(flow.copy_of(name)) for name in names)
    return frozenset(
        TopicPartition(topic=copy.name, partition=number)
        for copy in copies
        if copy is not None
        for number, end in copy.ends.items()
        if end > 0
    )


async def _positions(
    flow: FlowConfig, lane: str, target: Cluster, places: Collection[TopicPartition], how: Positions
) -> dict[TopicPartition, Position | None]:
    if how is Positions.NONE:
        return {}
    read = await group_offsets(target, position_group(flow.flow, lane), places, wait=how is Positions.SETTLED)
    return {place: None if word is None else position_of(*word) for place, word in read.found.items()}


def position_of(offset: int, metadata: str) -> Position:
    """Return a position as committed; metadata that Ferry did not write gives None, which matches nothing."""
    try:
        body = json.loads(metadata)
        return Position(target_next=offset, source_next=int(body["source_next"]), generation=int(body["generation"]))
    except MALFORMED:
        return Position(target_next=offset, source_next=None, generation=None)
