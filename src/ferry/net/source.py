"""Reads bounded ranges of many partitions ahead of the writer, within a fixed amount of memory.

Each leader is read by a few feeders, each with its own fetch under way, so that a distant source is asked for the
next pieces while earlier ones travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferry.config.clients import ENGINE_CHOOSES, FetchOptions
from ferry.model import TopicPartition
from ferry.net.cluster import Cluster
from ferry.net.feeder import Feeder
from ferry.net.intake import Intake
from ferry.net.patience import Patience
from ferry.net.routes import Routes
from ferry.net.throttle import Throttle

FEEDERS_PER_LEADER = 3
_MIN_FETCH_BYTES = 1 << 20
_LEADER_PATIENCE_S = 30.0


class SourceReader:
    """Deals partitions to feeders by the brokers that serve them, again for those that move."""

    def __init__(
        self,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        topic_ids: Mapping[str, str],
        *,
        isolation: int,
        memory_bytes: int,
        options: FetchOptions = ENGINE_CHOOSES,
        throttle: Throttle | None = None,
    ) -> None:
        """`ranges` are `[start, end)` per partition; `topic_ids` (may be empty) must be the plan's."""
        self.intake = Intake(cluster.loop, ranges, memory_bytes)
        self._cluster = cluster
        self._isolation = isolation
        self._options = options
        self._throttle = throttle
        self._routes = Routes(cluster, topic_ids)
        self._patience = Patience(min(_LEADER_PATIENCE_S, cluster.patience_s))
        self._feeders: list[Feeder] = []

    async def start(self) -> None:
        """Begin to read; to be called once."""
        places = list(self.intake.queues)
        await self._cluster.refresh({place.topic for place in places})
        self._deal(places)

    def close(self) -> None:
        """Stop reading; answers still on their way are dropped."""
        self.intake.close()

    def _deal(self, places: Iterable[TopicPartition]) -> None:
        """Give each partition to a feeder of the broker that serves it now; what has vanished fails."""
        self._feeders = [feeder for feeder in self._feeders if feeder.places and not feeder.ended]
        new = []
        for place in places:
            lost = self._routes.lost(place)
            if lost is not None:
                self.intake.fail(place, *lost)
                continue
            node = self._routes.node(place)
            peers = [feeder for feeder in self._feeders if feeder.node == node]
            if len(peers) < FEEDERS_PER_LEADER:
                feeder = self._feeder(node)
                self._feeders.append(feeder)
                new.append(feeder)
            else:
                feeder = min(peers, key=lambda peer: len(peer.places))
            feeder.places[place] = None
        for feeder in new:
            feeder.fetch_bytes = max(_MIN_FETCH_BYTES, self.intake.memory_bytes // (2 * len(self._feeders)))
            self._cluster.loop.call_soon(feeder.run)
        self.intake.wake()

    def _feeder(self, node: int) -> Feeder:
        return Feeder(
            self._cluster,
            self.intake,
            self._routes,
            self._patience,
            node,
            isolation=self._isolation,
            options=self._options,
            throttle=self._throttle,
            hand_over=self._deal,
        )
