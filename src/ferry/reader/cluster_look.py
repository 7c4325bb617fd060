"""What the brokers of a flow's clusters show, and how the copies of the flow's partitions are there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Unreachable
from ferry.features.doctor.acts.brokers import ask_brokers, ask_steering
from ferry.features.doctor.rules.clusters import PartitionHealth, health_of, with_absent
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.connections import EitherSide
from ferry.model import TopicPartition
from ferry.reader.documents import ClustersStory, ClusterStory

Reach = Callable[[Cluster], Awaitable[object]]
"""Asks a cluster for its brokers."""
Down = dict[str, FerryError]
"""Why clusters do not answer, or could not be asked, by alias."""


class ClusterLook:
    """Asks both clusters of a flow, and keeps what each showed last. Not thread-safe."""

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._seen: dict[str, ClusterStory] = {
            alias: ClusterStory(alias=alias) for alias in (flow.flow.source, flow.flow.target)
        }

    def over(self, connections: EitherSide, down: Down, polled_ms: int) -> ClustersStory:
        """Ask over connections that are open.

        `polled_ms` is when a poll read the metadata of the flow's topics on both sides; 0: the last one did not.
        """
        connections.run(partial(self._ask, connections, down, polled_ms, lambda cluster: cluster.refresh(())))
        return self._with(down)

    def apart(self, down: Down, *, patience_s: float) -> ClustersStory:
        """Ask the clusters that are not down over new connections. Raises BadInput for a secret that is not there."""
        connections = EitherSide.of(self._flow, patience_s=patience_s)
        try:
            connections.run(partial(self._ask, connections, down, 0, Cluster.open))
        finally:
            connections.close()
        return self._with(down)

    def _with(self, down: Down) -> ClustersStory:
        for alias, error in down.items():
            why, not_asked = (str(error), "") if isinstance(error, Unreachable) else ("", str(error))
            self._seen[alias] = replace(self._seen[alias], why=why, not_asked=not_asked)
        flow = self._flow.flow
        return ClustersStory(source=self._seen[flow.source], target=self._seen[flow.target])

    async def _ask(self, connections: EitherSide, down: Down, polled_ms: int, reach: Reach) -> None:
        """Ask both clusters at the same time, and add to `down` why one of them has no answer."""

        async def ask(cluster: Cluster) -> ClusterStory:
            await reach(cluster)
            asked = await ask_brokers(cluster)
            steering = await ask_steering(cluster, asked)
            return ClusterStory(alias=cluster.alias, asked_ms=wall_ms(), facts=asked.facts, steering=steering)

        clusters = [one for one in (connections.source, connections.target) if one.alias not in down]
        asking = [(one, connections.loop.call_soon_with_future(partial(ask, one))) for one in clusters]
        for cluster, answer in asking:
            try:
                self._seen[cluster.alias] = await answer
            except FerryError as error:
                down[cluster.alias] = error
        try:
            await self._look_at_partitions(connections, down, polled_ms)
        except FerryError as error:
            for cluster in clusters:
                self._lacks(cluster.alias, f"{error}.")

    async def _look_at_partitions(self, connections: EitherSide, down: Down, polled_ms: int) -> None:
        """Add the health of the flow's partitions; without a poll that read their metadata it is asked for."""
        source, target = connections.source, connections.target
        if source.alias not in down and not polled_ms:
            await source.refresh(None)
        chosen = [name for name in source.topics if self._flow.topics.selection.takes(name)]
        if source.alias in down and not chosen:
            why = f"which topics the flow takes is not known: cluster {source.alias} has not answered yet."
            self._lacks(target.alias, why)
            return
        copies = {copy for name in chosen for copy in self._flow.copies_of(name)} | {connections.ledger.place.topic}
        if target.alias not in down and not polled_ms:
            await target.refresh(copies)
        for cluster, names in ((source, chosen), (target, copies)):
            if cluster.alias not in down:
                self._has(cluster.alias, _health(cluster, names), polled_ms)

    def _has(self, alias: str, health: PartitionHealth, polled_ms: int) -> None:
        story = self._seen[alias]
        assert story.facts is not None
        facts = replace(story.facts, brokers=with_absent(story.facts.brokers, health.loads))
        asked_ms = min(story.asked_ms, polled_ms or story.asked_ms)
        self._seen[alias] = replace(story, asked_ms=asked_ms, facts=facts, health=health)

    def _lacks(self, alias: str, why: str) -> None:
        story = self._seen[alias]
        if story.health is None:
            self._seen[alias] = replace(story, not_known=why)


def _health(cluster: Cluster, names: Iterable[str]) -> PartitionHealth:
    return health_of(
        (TopicPartition(topic=name, partition=number), part)
        for name in names
        if name in cluster.topics
        for number, part in cluster.topics[name].partitions.items()
    )
