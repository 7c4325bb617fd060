"""One of MirrorMaker 2's own topics on a cluster: created in MirrorMaker 2's way, and appended to."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.errors import Retryable
from ferry.kafka.admin.topics import NewTopic, NotPermitted, TooFewBrokers, create_topic
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.appending import Appender
from ferry.ledger.settings import wanted_replicas
from ferry.model import Record, TopicPartition

COMPACTED = {"cleanup.policy": "compact"}
"""All settings of MirrorMaker 2's topics (`MirrorUtils.createSinglePartitionCompactedTopic` of Kafka 4.3.0)."""


class InternalTopic:
    """A compacted topic, of which the first partition is written. Belongs to the cluster's event loop."""

    def __init__(self, cluster: Cluster, name: str, *, partitions: int = 1) -> None:
        """`partitions` is the number that the topic gets when it is created."""
        self.cluster = cluster
        self.name = name
        self._partitions = partitions
        self._place = TopicPartition(topic=name, partition=0)
        self._appender = Appender(cluster, self._place, "topic")

    async def create(self, replication_factor: int) -> bool:
        """Create the topic if there is none, and wait for its leader; return whether it was created.

        It is compacted, with `replication_factor` replicas (-1: the cluster's default) where the cluster has as many
        brokers. Raises NotPermitted, Refused with the broker's reason, and Unreachable.
        """
        if self.name in await self.cluster.refresh([self.name]):
            return False
        try:
            await self._create(replication_factor)
        except TooFewBrokers:
            await self._create(wanted_replicas(replication_factor, len(self.cluster.brokers)))

        async def visible() -> None:
            if self.name not in await self.cluster.refresh([self.name]):
                if await self.cluster.hidden([self.name]):
                    raise NotPermitted(
                        f"not allowed to see topic {self.name} on cluster {self.cluster.alias}: grant WRITE on it"
                    )
                raise Retryable(f"topic {self.name} is not yet visible on cluster {self.cluster.alias}")
            self.cluster.leader(self._place)

        await self.cluster.retrying(visible)
        return True

    async def append(self, records: Sequence[Record]) -> None:
        """Write records to the topic after `create`.

        Raises Refused without permission, Unreachable when the leader keeps answering with errors.
        """
        await self._appender.append(records)

    async def _create(self, factor: int) -> None:
        topic = NewTopic(name=self.name, partitions=self._partitions, replication_factor=factor, configs=COMPACTED)
        await create_topic(self.cluster, topic)
