"""Reads bounded ranges of many partitions ahead of the writer, within a fixed amount of memory.

A few fetchers read each leader, each with its own fetch under way. So a distant source gets the next request while
earlier answers are on their way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ferry.config.client_options import ENGINE_CHOOSES, FetchOptions
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.broker_fetcher import BrokerFetcher
from ferry.kafka.fetch.epoch_check import Lineage, Mark
from ferry.kafka.fetch.fetch_buffer import FetchBuffer
from ferry.kafka.fetch.patience import Patience
from ferry.kafka.fetch.routes import Routes
from ferry.kafka.fetch.throttle import Throttle
from ferry.model import TopicPartition

FEEDERS_PER_LEADER = range(3, 6)
_MIN_FETCH_BYTES = 1 << 20
_LEADER_PATIENCE_S = 30.0


class SourceReader:
    """Assigns partitions to fetchers by the brokers that serve them, and assigns those that move again."""

    def __init__(
        self,
        cluster: Cluster,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        topic_ids: Mapping[str, str],
        *,
        isolation: int,
        memory_bytes: int,
        marks: Mapping[TopicPartition, Mark] | None = None,
        options: FetchOptions = ENGINE_CHOOSES,
        throttle: Throttle | None = None,
        checked: bool = True,
    ) -> None:
        """`ranges` are `[start, end)` per partition; `topic_ids` must be the plan's, and may be empty.

        `marks` show what was read of these logs before; a log that has lost some of it is not read. Not `checked`: the
        checksums of the batches were not checked, and the caller that takes them has to check them.
        """
        self.buffer = FetchBuffer(cluster.loop, ranges, memory_bytes, marks, isolation=isolation, checked=checked)
        self._cluster = cluster
        self._isolation = isolation
        self._options = options
        self._throttle = throttle
        self._routes = Routes(cluster, topic_ids)
        self._lineage = Lineage(cluster, self.buffer.marks)
        self._patience = Patience(min(_LEADER_PATIENCE_S, cluster.patience_s))
        self._fetchers: list[BrokerFetcher] = []

    async def start(self) -> None:
        """Begin to read; to be called once."""
        places = list(self.buffer.queues)
        await self._cluster.refresh({place.topic for place in places})
        self._routes.begin(places)
        self._assign(places)

    def close(self) -> None:
        """Stop reading; answers that are still on their way are dropped."""
        self.buffer.close()

    def _assign(self, places: Iterable[TopicPartition]) -> None:
        """Give each partition to a fetcher of the broker that serves it now; what has vanished fails."""
        by_node: dict[int, list[TopicPartition]] = {}
        for place in places:
            lost = self._routes.lost(place)
            if lost is None:
                by_node.setdefault(self._routes.node(place), []).append(place)
            else:
                self.buffer.fail(place, *lost)
        self._fetchers = [fetcher for fetcher in self._fetchers if fetcher.is_at_work]
        for node, mine in by_node.items():
            peers = [fetcher for fetcher in self._fetchers if fetcher.node == node]
            wanted = feeders_for(len(mine) + sum(len(peer.places) for peer in peers))
            for place in mine:
                if len(peers) < wanted:
                    peers.append(self._fetcher(node))
                    self._fetchers.append(peers[-1])
                    self._cluster.loop.call_soon(peers[-1].run)
                min(peers, key=lambda peer: len(peer.places)).places[place] = None
        self.buffer.wake()

    def _fetch_bytes(self) -> int:
        """Return how much a fetcher asks for.

        With fewer fetchers left it is more: the last one waits for each answer.
        """
        at_work = sum(fetcher.is_at_work for fetcher in self._fetchers)
        return max(_MIN_FETCH_BYTES, self.buffer.memory_bytes // (2 * max(1, at_work)))

    def _fetcher(self, node: int) -> BrokerFetcher:
        return BrokerFetcher(
            self._cluster,
            self.buffer,
            self._routes,
            self._lineage,
            self._patience,
            node,
            isolation=self._isolation,
            options=self._options,
            throttle=self._throttle,
            fetch_bytes=self._fetch_bytes,
            hand_over=self._assign,
        )


def feeders_for(partitions: int) -> int:
    """Return how many fetchers share a leader's partitions.

    It is the smallest number that divides them evenly, so that all end together.
    """
    return min(FEEDERS_PER_LEADER, key=lambda fetchers: math.ceil(partitions / fetchers) * fetchers)
