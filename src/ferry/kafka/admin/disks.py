"""What brokers have on their disks: the size of partitions, and the room that is left."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeLogDirsRequest

from ferry.errors import FerryError, Retryable
from ferry.kafka.connect.cluster import Cluster
from ferry.model import TopicPartition
from ferry.model.observed import BrokerSpace

SPACE_SECONDS = 5.0
"""How long a broker has to report its room."""


async def log_sizes(cluster: Cluster) -> dict[TopicPartition, int]:
    """Return the bytes on disk of each partition (its largest replica), as DescribeLogDirs reports them.

    They serve estimates only, so a broker that is down or that does not permit the request is left out.
    """
    sizes: dict[TopicPartition, int] = {}
    for node in cluster.brokers:
        try:
            answer = await cluster.ask(DescribeLogDirsRequest(topics=None), node)
        except Retryable:
            continue
        for directory in answer.results:
            for topic in directory.topics or ():
                for part in topic.partitions:
                    place = TopicPartition(topic=topic.name, partition=part.partition_index)
                    sizes[place] = max(sizes.get(place, 0), part.partition_size)
    return sizes


async def broker_space(cluster: Cluster) -> dict[int, BrokerSpace]:
    """Return the room in the tightest log directory of each broker that reports it.

    That takes Kafka 3.3 (KIP-827) and DESCRIBE on the cluster. All brokers are asked at once. Those that do not answer
    within seconds are left out, because only a forecast depends on them.
    """
    asked = {node: cluster.loop.call_soon_with_future(partial(_space, cluster, node)) for node in cluster.brokers}
    found = {node: await answer for node, answer in asked.items()}
    return {node: space for node, space in found.items() if space is not None}


async def _space(cluster: Cluster, node: int) -> BrokerSpace | None:
    request = DescribeLogDirsRequest(topics=[], min_version=4)
    try:
        answer = await cluster.within(min(SPACE_SECONDS, cluster.patience_s), partial(cluster.ask, request, node))
    except FerryError:
        return None
    return None if answer.error_code else tightest(answer.results)


def tightest(directories: Iterable[Any]) -> BrokerSpace | None:
    """Return the log directory with the least room among those that report it; None when none does.

    The directories are not added up. Two directories on one volume would count twice. A full directory would not show
    next to an empty one, and it is not known beforehand which directory a partition gets.
    """
    sized = [each for each in directories if not each.error_code and each.total_bytes >= 0]
    least = min(sized, key=lambda each: int(each.usable_bytes), default=None)
    return None if least is None else BrokerSpace(total=least.total_bytes, usable=least.usable_bytes)
