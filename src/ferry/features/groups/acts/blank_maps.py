"""Offset maps of partitions that the flow has created, and copied nothing into yet: they lead to the beginning."""

from __future__ import annotations

from collections.abc import Collection

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.offset_maps import PartitionMap
from ferry.features.groups.rules.offset_map import OffsetMap
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.model import TopicPartition


async def blank_maps(
    flow: FlowConfig, target: Cluster, sources: Collection[TopicPartition]
) -> dict[TopicPartition, PartitionMap]:
    """Return maps of those source partitions whose copy exists and has never held a record; `sources` have no receipts.

    The first record that is copied will be at offset 0, so a group that is there misses none. Without an offset a
    consumer follows its auto.offset.reset, and with `latest` it skips what comes before its first request. Raises
    Unreachable.
    """
    alias = flow.flow.source
    copies = {
        place: TopicPartition(
            topic=flow.topics.policy.format_remote_topic(alias, place.topic), partition=place.partition
        )
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
