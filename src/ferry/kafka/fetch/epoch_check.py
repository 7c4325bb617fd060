"""Whether a leader's log goes on from what was read: asked when the leader epoch is another one (KIP-320).

As the Java consumer does. A log loses records that were readable only when another leader takes over, and that one has
another leader epoch. Each fetch names the epoch under which the log was last found sound, so that a broker with another
one refuses it; nothing is read from a log that nobody looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epochs import epoch_ends
from ferry.model import TopicPartition

UNKNOWN_EPOCH = -1


class Mark(NamedTuple):
    """What was read of a log, or written to it: one that has it still says that epoch `epoch` ends at `end` or behind.

    The epoch is -1 where it is not known: before there was one in record batches, or when nothing was read or written.
    """

    epoch: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """By partition where the log of now parts from what was read, and the partitions that nobody answered for."""

    cut: Mapping[TopicPartition, int]
    unanswered: frozenset[TopicPartition]


class Lineage:
    """The leader epochs under which partitions are read. The feeders of a source share one."""

    def __init__(self, cluster: Cluster, marks: Mapping[TopicPartition, Mark]) -> None:
        """`marks` are read at each look; the intake keeps them."""
        self._cluster = cluster
        self._marks = marks
        self._sound: dict[TopicPartition, int] = {}

    def epoch(self, place: TopicPartition) -> int:
        """The leader epoch that a fetch names; -1: none, the broker compares nothing."""
        return self._sound.get(place, UNKNOWN_EPOCH)

    def is_sound(self, place: TopicPartition) -> bool:
        """Whether the log was looked at since the leader epoch that the metadata tell."""
        return place in self._sound and self._sound[place] >= self._told(place)

    async def look(self, places: Iterable[TopicPartition]) -> Looked:
        """Look at the logs of those that are not known to be sound; one request per leader, mostly none.

        Sound is also what nothing tells of: no epoch was read, the log does not know it, or the brokers are older than
        Kafka 2.3.
        """
        told = {place: self._told(place) for place in places if not self.is_sound(place)}
        asked = {place: self._marks[place] for place, epoch in told.items() if self._marks[place].epoch != epoch}
        asked = {place: mark for place, mark in asked.items() if mark.epoch >= 0}
        ends: Mapping[TopicPartition, int] = {}
        if asked:
            ends = await epoch_ends(self._cluster, {place: mark.epoch for place, mark in asked.items()}, told)
        cut = {place: ends[place] for place, mark in asked.items() if 0 <= ends.get(place, mark.end) < mark.end}
        unanswered = frozenset(asked.keys() - ends.keys())
        for place in told.keys() - cut.keys() - unanswered:
            self._sound[place] = max(told[place], self.epoch(place))
        return Looked(cut=cut, unanswered=unanswered)

    def _told(self, place: TopicPartition) -> int:
        info = self._cluster.topics.get(place.topic)
        partition = info.partitions.get(place.partition) if info is not None else None
        return UNKNOWN_EPOCH if partition is None else partition.leader_epoch
