"""Transactions that are open on partitions, as their leaders report (DescribeProducers, KIP-664), and whose they are.

They serve messages only: what cannot be learned is left out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kafka.protocol.admin import DescribeProducersRequest, ListTransactionsRequest

from ferry.errors import FerryError
from ferry.kafka.connect.cluster import Cluster
from ferry.model import TopicPartition
from ferry.model.observed import OpenTransaction


async def open_transactions(
    cluster: Cluster, places: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[OpenTransaction, ...]]:
    """Return the open transactions of each partition, the oldest first; none where its leader reports none.

    Left out are partitions that a broker before 2.8 leads, and those that this login may not READ.
    """
    by_leader: dict[int, dict[str, list[int]]] = {}
    for place in sorted(places):
        try:
            by_leader.setdefault(cluster.leader(place), {}).setdefault(place.topic, []).append(place.partition)
        except FerryError:
            continue
    found: dict[TopicPartition, tuple[OpenTransaction, ...]] = {}
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
                begun = [
                    OpenTransaction(
                        producer_id=one.producer_id, start=one.current_txn_start_offset, last_ms=one.last_timestamp
                    )
                    for one in part.active_producers
                    if one.current_txn_start_offset >= 0
                ]
                if not part.error_code:
                    place = TopicPartition(topic=row.name, partition=part.partition_index)
                    found[place] = tuple(sorted(begun, key=lambda one: one.start))
    return found


async def named_transactions(
    cluster: Cluster, places: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[OpenTransaction, ...]]:
    """Return the open transactions of each partition with the transactional ids that coordinators know.

    They are sorted, the oldest first. Left out are partitions that a broker before 2.8 leads, and those that this login
    may not READ.
    """
    found = await open_transactions(cluster, places)
    names = await transactional_ids(cluster, {one.producer_id for begun in found.values() for one in begun})
    return {
        place: tuple(replace(one, transactional_id=names.get(one.producer_id, "")) for one in begun)
        for place, begun in found.items()
    }


async def transactional_ids(cluster: Cluster, producer_ids: Collection[int]) -> dict[int, str]:
    """Return the transactional ids of producers, as the coordinators know them (ListTransactions).

    Left out are those that no coordinator knows (a hanging transaction), those that this login may not DESCRIBE, and
    those of brokers before 3.0.
    """
    found: dict[int, str] = {}
    if not producer_ids:
        return found
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=sorted(producer_ids))
    for node in cluster.brokers:
        try:
            answer = await cluster.ask(request, node)
        except FerryError:
            continue
        found |= {one.producer_id: one.transactional_id for one in answer.transaction_states}
    return found
