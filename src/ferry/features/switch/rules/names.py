"""The topics that clients use on the new cluster, and where groups and flows begin there, by replication policy.

DefaultReplicationPolicy: producers write `orders`. Groups read `primary.orders`, where they begin by the offset map.
They also read `orders`, where they begin at their own offset, or else at its end at the cut-over. The flow back
continues at the position of its lane, or begins as `ferry.start` says, with `latest` where producers continued.

IdentityReplicationPolicy, or another one that keeps the name: producers write and groups read `orders`. Groups begin
there by the map of the flow that wrote the next record. The flow back begins after the cut-over. A gap in its ledger
represents what came from its own target, or was left there.

A switchover, a failover and a failback differ only in direction: the names are those of the flow along which clients
move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of one topic of the old cluster on the new one."""

    topic: str
    copy: str
    live: str
    """The topic that producers write from now on."""

    @property
    def keeps_name(self) -> bool:
        """Whether old and new records share one topic, so that its name does not separate them."""
        return self.copy == self.live

    @property
    def read(self) -> tuple[str, ...]:
        """The topics that groups read if they read the topic before."""
        return (self.copy,) if self.keeps_name else (self.copy, self.live)


def names_of(via: FlowConfig, topic: str, clusters: Collection[str]) -> Names | None:
    """Return the names of a topic that `via` copies; None for a topic that was copied to the old cluster.

    `clusters` are the aliases of the file. `shop` in `shop.orders` is not one of them: it is a part of the topic's
    name.
    """
    if via.topics.policy.topic_source(topic) in clusters and via.first_name(topic) != topic:
        return None
    return Names(topic=topic, copy=via.copy_of(topic), live=topic)


def written_names(via: FlowConfig, topics: Iterable[str], clusters: Collection[str]) -> set[str]:
    """Return the names on the new cluster of what `via` copies of `topics`: copies, and what producers write now.

    The topics come from the ledger, whose writers could name any topic. So those that the file does not take are left
    out.
    """
    taken = [topic for topic in topics if via.topics.selection.takes(topic)]
    made = [names for topic in taken if (names := names_of(via, topic, clusters)) is not None]
    return {name for names in made for name in (names.copy, names.live)}
