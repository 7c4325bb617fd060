"""The maps of two opposite flows that keep a topic's name: each of them copies what the other one does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.offset_maps import PartitionMap, maps_of_ledger
from ferry.features.groups.rules.both_ways import BothWays
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
    opposite flow, which is on the source, shows where they are on the target. Raises Unreachable and Refused.
    """
    found: dict[TopicPartition, Maps] = dict(maps)
    alias = flow.flow.source
    kept = {place: some for place, some in asked.items() if _keeps_name(flow, alias, place.topic)}
    ledger = LedgerTopic(connections.source, flow.flow.target)
    if not kept or not await ledger.exists():
        return found
    await ledger.find()
    turned = await maps_of_ledger(
        ledger,
        await LedgerCache(ledger).view(),
        flow.lane,
        kept,
        target=connections.source,
        source=connections.target,
        backward=True,
    )
    for place, one in turned.items():
        found[place] = BothWays(forward=maps.get(place), backward=one)
    return found


def _keeps_name(flow: FlowConfig, alias: str, topic: str) -> bool:
    return flow.topics.policy.format_remote_topic(alias, topic) == topic
