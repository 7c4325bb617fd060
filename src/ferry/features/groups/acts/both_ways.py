"""The maps of two opposite flows that keep a topic's name: each of them copies what the other one does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.groups.acts.offset_maps import PartitionMap, maps_of_ledger
from ferry.features.groups.rules.both_ways import BothWays, ForwardAlone
from ferry.features.groups.rules.translated import Maps
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.connections import FlowConnections
from ferry.lane.ledger_cache import LedgerCache
from ferry.model import TopicPartition


async def both_ways(
    flow: FlowConfig,
    connections: FlowConnections,
    asked: Mapping[TopicPartition, Collection[int]],
    maps: Mapping[TopicPartition, PartitionMap],
) -> dict[TopicPartition, Maps]:
    """Return the `maps` of a flow, and with them those of the opposite flow for partitions that keep their name.

    A source partition has records there that came from the target. The flow skips them. The ledger of the
    opposite flow, which is on the source, shows where they are on the target. If this login may not see that ledger,
    the flow's own maps count where they skip none of these records. Raises Unreachable.
    """
    found: dict[TopicPartition, Maps] = dict(maps)
    alias = flow.flow.source
    kept = {place: some for place, some in asked.items() if _keeps_name(flow, alias, place.topic)}
    if not kept:
        return found
    try:
        turned = await _turned(flow, connections, kept)
    except Refused as error:
        return found | _alone(flow, kept, maps, error)
    for place, one in turned.items():
        found[place] = BothWays(forward=maps.get(place), backward=one)
    return found


async def _turned(
    flow: FlowConfig, connections: FlowConnections, kept: Mapping[TopicPartition, Collection[int]]
) -> dict[TopicPartition, PartitionMap]:
    """Return the maps of the opposite flow, from its target back; empty if it never ran. Raises Refused as `exists`."""
    ledger = LedgerTopic(connections.source, flow.flow.target)
    if not await ledger.exists():
        return {}
    return await maps_of_ledger(
        ledger,
        await LedgerCache(ledger).view(),
        flow.lane,
        kept,
        target=connections.source,
        source=connections.target,
        backward=True,
    )


def _alone(
    flow: FlowConfig, kept: Collection[TopicPartition], maps: Mapping[TopicPartition, PartitionMap], error: Refused
) -> dict[TopicPartition, Maps]:
    """Return the maps of partitions that keep their name, if the opposite flow's ledger may not be read (`error`)."""
    found: dict[TopicPartition, Maps] = {}
    for place in kept:
        forward = maps.get(place)
        if forward is not None or flow.topics.selection.takes(place.topic):
            why = (
                f"offsets of {place} are not translated where its next records may have come from "
                f"{flow.flow.target}: {error}"
            )
            found[place] = ForwardAlone(forward=forward, place=place, why=why)
    return found


def _keeps_name(flow: FlowConfig, alias: str, topic: str) -> bool:
    return flow.topics.policy.format_remote_topic(alias, topic) == topic
