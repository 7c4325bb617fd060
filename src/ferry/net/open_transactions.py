"""Transactions that are open on partitions, as their leaders know them (DescribeProducers, KIP-664)."""

from __future__ import annotations

from collections.abc import Collection

from kafka.protocol.admin import DescribeProducersRequest

from ferry.decide.plan.facts import OpenTransaction
from ferry.errors import FerryError
from ferry.model import TopicPartition
from ferry.net.cluster import Cluster


async def open_transactions(
    cluster: Cluster, places: Collection[TopicPartition]
) -> dict[TopicPartition, OpenTransaction]:
    """The oldest open transaction of each partition that has one.

    It only serves notes: what cannot be learned (a broker before 2.8, no READ on the topic) is left out.
    """
    by_leader: dict[int, dict[str, list[int]]] = {}
    for place in sorted(places):
        try:
            by_leader.setdefault(cluster.leader(place), {}).setdefault(place.topic, []).append(place.partition)
        except FerryError:
            continue
    found: dict[TopicPartition, OpenTransaction] = {}
    topic = DescribeProducersRequest.TopicRequest
    for node, parts in by_leader.items():
        request = DescribeProducersRequest(
            topics=[topic(name=name, partition_indexes=numbers) for name, numbers in parts.items()]
        )
        try:
            answer = await cluster.ask(request, node)
        except FerryError:
            continue
        for row in answer.topics:
            for part in row.partitions:
                begun = [one for one in part.active_producers if one.current_txn_start_offset >= 0]
                if not part.error_code and begun:
                    oldest = min(begun, key=lambda one: one.current_txn_start_offset)
                    found[TopicPartition(topic=row.name, partition=part.partition_index)] = OpenTransaction(
                        producer_id=oldest.producer_id,
                        start=oldest.current_txn_start_offset,
                        last_ms=oldest.last_timestamp,
                    )
    return found
