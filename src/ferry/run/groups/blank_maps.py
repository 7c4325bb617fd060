"""Offset maps of partitions that the flow has made and copied nothing into yet: all leads to their beginning."""

from __future__ import annotations

from collections.abc import Collection

from ferry.config.flow.flow import FlowConfig
from ferry.decide.groups.offset_map import OffsetMap
from ferry.model import TopicPartition
from ferry.net.connect.cluster import Cluster
from ferry.net.fetch.offsets import LATEST, listed_offsets
from ferry.net.fetch.requests import READ_UNCOMMITTED
from ferry.run.groups.offset_maps import PartitionMap


async def blank_maps(
    flow: FlowConfig, target: Cluster, sources: Collection[TopicPartition]
) -> dict[TopicPartition, PartitionMap]:
    """Maps of those source partitions whose copy is there and has never held a record; `sources` have no receipts.

    Whatever is copied first will lie at offset 0, so who stands there misses none of it. Without an offset a consumer
    goes by its auto.offset.reset, and with `latest` past what comes before it first asks. Raises Unreachable.
    """
    alias = flow.flow.source
    copies = {
        place: TopicPartition(topic=flow.policy.format_remote_topic(alias, place.topic), partition=place.partition)
        for place in sources
    }
    topics = await target.refresh({copy.topic for copy in copies.values()})
    there = [
        copy for copy in copies.values() if copy.topic in topics and copy.partition in topics[copy.topic].partitions
    ]
    ends = (await listed_offsets(target, dict.fromkeys(there, LATEST), isolation=READ_UNCOMMITTED)).found
    return {
        place: PartitionMap(source=place, target=copy, offsets=OffsetMap((), first=0, end=0, last=0, other=0))
        for place, copy in copies.items()
        if ends.get(copy) == 0
    }
