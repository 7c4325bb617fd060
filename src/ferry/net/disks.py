"""What brokers have on their disks: how large partitions are, and how much room is left."""

from __future__ import annotations

from kafka.protocol.admin import DescribeLogDirsRequest

from ferry.decide.facts import BrokerSpace
from ferry.errors import Refused, Retryable
from ferry.model import TopicPartition
from ferry.net.cluster import Cluster


async def log_sizes(cluster: Cluster) -> dict[TopicPartition, int]:
    """Bytes on disk per partition (the largest replica), as DescribeLogDirs reports them.

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
    """Room in the log directories of the brokers that tell (Kafka 3.3, KIP-827; DESCRIBE on the cluster).

    The others are left out, for nothing but a warning depends on them.
    """
    found = {}
    for node in cluster.brokers:
        try:
            answer = await cluster.ask(DescribeLogDirsRequest(topics=[], min_version=4), node)
        except (Retryable, Refused):
            continue
        told = [each for each in answer.results if not each.error_code and each.total_bytes >= 0]
        if told and not answer.error_code:
            found[node] = BrokerSpace(
                total=sum(each.total_bytes for each in told), usable=sum(each.usable_bytes for each in told)
            )
    return found
