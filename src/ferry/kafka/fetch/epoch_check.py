"""Whether a leader's log continues what was read: checked when the leader epoch is another one (KIP-320).

The Java consumer does the same. A log loses readable records only when another leader takes over, and that leader has
another epoch. Each fetch names the epoch in which the log was last found sound, so a broker with another epoch refuses
it. Nothing is read from a log that was not checked.
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
    """How far a log was read or written: an intact log reports that epoch `epoch` ends at `end` or later.

    The epoch is -1 where it is not known: record batches had none yet, or nothing was read or written.
    """

    epoch: int
    end: int

    @classmethod
    def of(cls, epoch: int | None, end: int | None) -> Mark:
        """Return a mark of what a plan or a receipt has; None: not known."""
        return cls(UNKNOWN_EPOCH if epoch is None else epoch, -1 if end is None else end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """Logs that depart from what was read: by partition the offset from which they do.

    `unanswered` are the partitions for which no leader answered.
    """

    cut: Mapping[TopicPartition, int]
    unanswered: frozenset[TopicPartition]


class Lineage:
    """The leader epochs in which partitions are read. The fetchers of a source share one lineage."""

    def __init__(self, cluster: Cluster, marks: Mapping[TopicPartition, Mark]) -> None:
        """`marks` are read at each check; the fetch buffer keeps them."""
        self._cluster = cluster
        self._marks = marks
        self._sound: dict[TopicPartition, int] = {}

    def epoch(self, place: TopicPartition) -> int:
        """Return the leader epoch that a fetch names; -1: none, so the broker compares nothing."""
        return self._sound.get(place, UNKNOWN_EPOCH)

    def is_sound(self, place: TopicPartition) -> bool:
        """Return whether the log was checked since the leader epoch that the metadata shows."""
        return place in self._sound and self._sound[place] >= self._reported(place)

    async def look(self, places: Iterable[TopicPartition]) -> Looked:
        """Check the logs of the partitions that are not known to be sound; one request per leader, most often none.

        A log also counts as sound when nothing can be compared. That is so if no epoch was read, if the log does not
        have it, or if the brokers are older than Kafka 2.3.
        """
        reported = {place: self._reported(place) for place in places if not self.is_sound(place)}
        asked = {place: self._marks[place] for place, epoch in reported.items() if self._marks[place].epoch != epoch}
        asked = {place: mark for place, mark in asked.items() if mark.epoch >= 0}
        ends: Mapping[TopicPartition, int] = {}
        if asked:
            ends = await epoch_ends(self._cluster, {place: mark.epoch for place, mark in asked.items()}, reported)
        cut = {place: ends[place] for place, mark in asked.items() if 0 <= ends.get(place, mark.end) < mark.end}
        unanswered = frozenset(asked.keys() - ends.keys())
        for place in reported.keys() - cut.keys() - unanswered:
            self._sound[place] = max(reported[place], self.epoch(place))
        return Looked(cut=cut, unanswered=unanswered)

    def _reported(self, place: TopicPartition) -> int:
        info = self._cluster.topics.get(place.topic)
        partition = info.partitions.get(place.partition) if info is not None else None
        return UNKNOWN_EPOCH if partition is None else partition.leader_epoch
