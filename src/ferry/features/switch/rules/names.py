"""The table of policy and verb: which topics clients use on the new cluster, and where groups and flows begin there.

DefaultReplicationPolicy: producers write `orders`; groups read `primary.orders`, where they begin by the offset map,
and `orders`, where they begin where they stood, else where it ended at the cut-over; the flow back goes on where its
lane stands, or as `ferry.start` says, at latest where producers went on.

IdentityReplicationPolicy, or another one that keeps the name: producers write and groups read `orders`, where groups
begin by the map of the flow that wrote the record that is next; the flow back begins behind the cut-over, and a gap in
its ledger stands for what came from the cluster that it goes to, or was left there.

A switchover, a failover and a failback differ in direction only: the names are those of the flow along which clients
move.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """One topic of the old cluster, as clients find it on the new one."""

    topic: str
    copy: str
    live: str
    """Where producers write from now on."""

    @property
    def keeps_name(self) -> bool:
        """Whether old and new records share one topic: a name does not tell them apart."""
        return self.copy == self.live

    @property
    def read(self) -> tuple[str, ...]:
        """What groups read that read the topic before."""
        return (self.copy,) if self.keeps_name else (self.copy, self.live)


def names_of(via: FlowConfig, topic: str, clusters: Collection[str]) -> Names | None:
    """The names of a topic that `via` copies; None of one that was copied to the old cluster.

    `clusters` are the aliases of the file: the `shop` of `shop.orders` is none of them, but a part of the topic's name.
    """
    if via.policy.topic_source(topic) in clusters and via.first_name(topic) != topic:
        return None
    return Names(topic=topic, copy=via.policy.format_remote_topic(via.flow.source, topic), live=topic)
