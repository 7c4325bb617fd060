"""The offset maps of a flow's partitions, with all that may say where their next records are."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.blank_maps import blank_maps
from ferry.features.groups.acts.both_ways import both_ways
from ferry.features.groups.acts.offset_maps import offset_maps
from ferry.features.groups.acts.translated import deals, dealt_maps
from ferry.features.groups.rules.translated import Maps
from ferry.lane.connections import FlowConnections, TargetConnection
from ferry.model import TopicPartition


async def maps_of(
    flow: FlowConfig, connections: TargetConnection, asked: Mapping[TopicPartition, Collection[int]]
) -> dict[TopicPartition, Maps]:
    """Return the maps of the flow's own lane for these offsets of source partitions.

    Maps of repartitioned topics lead nowhere, and say why. Those of partitions that the flow takes and has no receipts
    of are blank. If the source answers, the opposite flow counts for partitions that keep their name (`both_ways`).
    """
    if not asked:
        return {}
    maps = await offset_maps(connections, flow.lane, asked)
    if missing := [place for place in asked if place not in maps]:
        maps |= dealt_maps(flow, missing, deals(flow, await connections.view()))
        blank = [place for place in missing if place not in maps and flow.topics.selection.takes(place.topic)]
        maps |= await blank_maps(flow, connections.target, blank) if blank else {}
    if isinstance(connections, FlowConnections) and connections.has_source:
        return await both_ways(flow, connections, asked, maps)
    return dict(maps)
