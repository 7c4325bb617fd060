"""Reads which copies end before the offsets of their source partitions, although nothing is left to copy."""

from __future__ import annotations

from collections.abc import Collection

from ferry.features.identical.rules.short import Short, begun_at, idle_places, shorter
from ferry.features.identical.settings import IdenticalSettings
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.model import Plan, TopicPartition


async def look_short(lane: OpenLane, view: LedgerView, plan: Plan) -> dict[TopicPartition, Short]:
    """Return the copies that end too early, by target partition, of topics that keep their offsets.

    They have no receipt, and the source has no record to copy. `plan` is what a run would copy now.
    """
    flow, source = lane.flow, lane.source
    kept, selection, policy = flow.of(IdenticalSettings), flow.topics.selection, flow.topics.policy
    topics = {
        name: info for name, info in source.topics.items() if selection.takes(name) and kept.keeps_topic(policy, name)
    }
    places = idle_places(view, lane.name, plan, {name: info.partitions for name, info in topics.items()})
    if not places:
        return {}
    begins = await listed_offsets(source, dict.fromkeys(places, EARLIEST), isolation=READ_UNCOMMITTED)
    at = begun_at(view, lane.name, begins.found, {name: info.id_text for name, info in topics.items()})
    if not at:
        return {}
    ends = await listed_offsets(source, dict.fromkeys(at, LATEST), isolation=READ_COMMITTED, leaders_known=True)
    positions = {
        TopicPartition(topic=flow.copy_of(place.topic), partition=place.partition): position
        for place, position in at.items()
        if place in ends.found and ends.found[place] <= position
    }
    return shorter(positions, await ends_of_copies(lane.target, positions))


async def ends_of_copies(target: Cluster, places: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
    """Return where target partitions end: at 0 if they are not there. None: they do not answer."""
    if not places:
        return {}
    there = await target.refresh({place.topic for place in places})
    asked = {
        place: LATEST for place in places if place.topic in there and place.partition in there[place.topic].partitions
    }
    listed = await listed_offsets(target, asked, isolation=READ_UNCOMMITTED, leaders_known=True)
    return {place: listed.found.get(place) if place in asked else 0 for place in places}
