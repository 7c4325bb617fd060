"""Read the state of each partition of a flow on both sides, as far as they answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import OnGuard
from ferry.errors import FerryError, Refused, Unreachable
from ferry.features.groups.acts.offset_maps import newest_receipts
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.beginning import stands_at
from ferry.features.switch.rules.partition_state import (
    PartitionState,
    copied_ends,
    copy_end,
    dealt_ends,
    reaches_the_ends,
    recorded_partitions,
    standings,
    without_partitions,
)
from ferry.kafka.connect.cluster import Cluster, TopicInfo
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.behind import look_behind
from ferry.lane.connections import TargetFirst
from ferry.ledger.ledger import LedgerView, accounted
from ferry.ledger.producer_codec import sent_places
from ferry.ledger.receipts import last_receipts, open_receipts
from ferry.ledger.runs import newest_run, sealed_plan
from ferry.ledger.unit_codec import eras, last_units
from ferry.model import Plan, RefusalKind, TopicPartition
from ferry.policy import is_heartbeats_topic


def takes(flow: FlowConfig, topic: str) -> bool:
    """Return whether a switch of the flow covers a topic: all that it copies, without heartbeats, which always grow."""
    return flow.topics.selection.takes(topic) and not is_heartbeats_topic(flow.topics.policy, topic)


def keeps_offsets(flow: FlowConfig) -> Callable[[str], bool]:
    """Return what says whether the records of a source topic of the flow keep their offsets."""
    return partial(flow.of(IdenticalSettings).keeps_topic, flow.topics.policy)


def why_lost(connections: TargetFirst) -> str | None:
    """Return why the source does not answer; None if it does."""
    error = connections.down.get(connections.source.alias)
    return None if error is None else str(error)


async def source_ends(flow: FlowConfig, cluster: Cluster) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
    """Return the high watermarks of what the flow copies, and the partitions without an answer. Raises Unreachable."""
    return await ends_of(cluster, [info for name, info in (await cluster.refresh(None)).items() if takes(flow, name)])


async def ends_of(
    cluster: Cluster, topics: Iterable[TopicInfo]
) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
    """Return the high watermarks of topics, and the partitions without an answer. Raises Unreachable."""
    places = [TopicPartition(topic=info.name, partition=number) for info in topics for number in info.partitions]
    if not places:
        return {}, []
    listed = await listed_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)
    return listed.found, sorted(place for place in places if place not in listed.found)


async def read_ends(
    sides: Sides, connections: TargetFirst, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """Return where the copies of the flow end (`copy_end`), in partitions that the flow back does not copy.

    Of a topic that the flow back copies, a group may have read other records on the old cluster. `ends` are the log
    ends of the partitions.
    """
    target, lane = connections.target, sides.via.lane
    view = await connections.view()
    places = {
        place
        for place in newest_receipts(view, lane, ends, backward=True)
        if sides.back is None or not sides.back.topics.selection.takes(place.topic)
    }
    topics = await target.refresh({place.topic for place in places}) if places else {}
    asked = [place for place in places if place.topic in topics]
    stable = await listed_offsets(target, dict.fromkeys(asked, LATEST), isolation=READ_COMMITTED)
    view = await connections.view()  # a run may have committed since
    open_now = {one.target for one in open_receipts(view, lane)}
    return {
        place: copy_end(
            last,
            end=ends[place],
            stable=stable.found.get(place),
            topic_id=topics[place.topic].id_text,
            is_open=place in open_now,
        )
        for place, last in newest_receipts(view, lane, asked, backward=True).items()
    }


async def look_at_standings(flow: FlowConfig, connections: TargetFirst) -> list[PartitionState]:
    """Return the state of the flow's partitions; if the source does not answer, as the ledger last recorded it."""
    cache = connections.cache
    view = await cache.view_with_newest(flow.lane, 2)
    newest = newest_run(view, flow.lane)
    sealed = None if newest is None else sealed_plan(view, flow.lane, newest.record.run, newest.generation)
    last_plan = None if sealed is None else sealed[0]
    if sealed is not None and not sealed[0].looked:
        sealed = None
    plan = None if sealed is None else _covered(flow, sealed[0])
    lasts = [last for last in last_receipts(view, flow.lane).values() if takes(flow, last.source.topic)]
    units = [last for last in last_units(view, flow.lane).values() if takes(flow, last.source.topic)]
    rules = [era for era in eras(view, flow.lane).values() if takes(flow, era.source_topic)]
    live: dict[TopicPartition, int] = {}
    others: Collection[TopicPartition] = recorded_partitions(view, flow.lane, last_plan)
    if connections.has_source:
        try:
            live, others = await source_ends(flow, connections.source)
        except (Unreachable, Refused) as error:
            connections.down[connections.source.alias] = error
    named = {place.topic for place in (*live, *others, *(last.source for last in (*lasts, *units)))}
    known_places = [*live, *others, *without_partitions(last_plan, named)]
    targets = {
        place: TopicPartition(topic=flow.copy_of(place.topic), partition=place.partition)
        for place in known_places
        if takes(flow, place.topic)
    }
    copies = {*targets.values(), *(last.target for last in lasts), *(last.target for last in units)}
    there = await connections.target.refresh({place.topic for place in copies}) if copies else {}
    asked = [place for place in copies if place.topic in there and place.partition in there[place.topic].partitions]
    ends = await listed_offsets(connections.target, dict.fromkeys(asked, LATEST), isolation=READ_UNCOMMITTED)
    ids = {name: info.id_text for name, info in there.items()}
    sources = {target: source.topic for source, target in targets.items()}
    sources |= {last.target: last.source.topic for last in lasts}
    copied = copied_ends(lasts, _accounted(flow, view, sources, ids), ids, ends.found)
    started_ms = {run.generation: run.record.started_ms for run in view.runs}
    source_ids = {name: connections.source.topics[name].id_text for name in {at.topic for at in live}}
    found = standings(
        lasts,
        plan,
        0 if newest is None else newest.record.started_ms,
        live,
        targets,
        ends.found,
        wall_ms(),
        copied,
        dealt_ends(rules, units, ends.found.keys(), started_ms),
        stands_at(view, flow.lane, source_ids),
        started_ms=started_ms,
        whole=sealed is not None and reaches_the_ends(sealed[0], flow.copy.budget),
        earlier=_earlier(flow, view),
    )
    return [replace(one, source_id=source_ids.get(one.source.topic, "")) for one in found]


def _earlier(flow: FlowConfig, view: LedgerView) -> list[tuple[Plan, int]]:
    """Return the plan of the run before the newest one, and when it began (ms); nothing if it misses an end."""
    runs = view.remembered(flow.lane)[-2:-1]
    plans = [(sealed_plan(view, flow.lane, run.record.run, run.generation), run.record.started_ms) for run in runs]
    return [
        (_covered(flow, sealed[0]), began_ms)
        for sealed, began_ms in plans
        if sealed is not None and sealed[0].looked and reaches_the_ends(sealed[0], flow.copy.budget)
    ]


def _covered(flow: FlowConfig, plan: Plan) -> Plan:
    """Return the part of a run's plan that a switch covers."""
    return replace(plan, slices=tuple(piece for piece in plan.slices if takes(flow, piece.source.topic)))


def _accounted(
    flow: FlowConfig, view: LedgerView, sources: Mapping[TopicPartition, str], ids: Mapping[str, str]
) -> dict[TopicPartition, int]:
    """Return up to where copies were checked for records of other clients.

    Copies in which runs ignore such records (`ferry.guard.foreign.writer` is not `fail`) are left out.
    """
    return {
        place: offset
        for place, offset in accounted(view, flow.lane, ids).items()
        if place in sources and flow.topics.guards.of(RefusalKind.FOREIGN_WRITER, sources[place]) is OnGuard.FAIL
    }


async def written_by_others(flow: FlowConfig, connections: TargetFirst, rows: Iterable[PartitionState]) -> list[str]:
    """Return the copies with records of other clients after what was copied, as far as they can be read."""
    kept = sent_places(await connections.view(), flow.lane)  # in no transaction, so no marker follows them
    begins = {
        row.target: row.target_copied
        for row in rows
        if row.target_end is not None
        and row.target_end > row.target_copied + (row.target not in kept)  # the marker of the last transaction
        and not flow.topics.merge.matches(row.source.topic)
    }
    try:
        behind = await look_behind(connections.target, begins) if begins else None
    except FerryError:
        return []  # it is only shown, and no step depends on it
    found = {} if behind is None else {**behind.undecided, **behind.foreign}
    return sorted(str(place) for place in found)
