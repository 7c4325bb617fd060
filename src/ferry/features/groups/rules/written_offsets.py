"""What the ledger remembers of a group's offsets: what Ferry wrote, and what of Ferry's lay there before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.model import TopicPartition, Vector


@dataclass(frozen=True, slots=True)
class Wrote:
    """A source offset, and the target offset that Ferry wrote for it. In topics that are dealt to other partitions the
    first is the sum of what the group had read of all source partitions."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Held:
    """What Ferry meant to write last on one partition, and what of Ferry's lay there then.

    `prior` is None where nothing did, and as soon as the write was seen on the target: who puts that back is another.
    """

    wrote: Wrote
    prior: Wrote | None = None

    def found_as(self, offset: int) -> Wrote | None:
        """Which of the two an offset of the target is; None: somebody else's."""
        if offset == self.wrote.target:
            return self.wrote
        return self.prior if self.prior is not None and offset == self.prior.target else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldGroup:
    """What the ledger says of a group: its partitions by the target's names, and when all of them were last written."""

    offsets: Mapping[TopicPartition, Held]
    sources: Mapping[str, str]
    """The source topic of each target topic."""
    renewed_ms: int
    at: int = -1
    """Where its record lies in the ledger; -1: nowhere yet."""
    read: Mapping[str, Vector] = field(default_factory=dict)
    """By target topic that records are dealt to (ADR 39): who has read at least so much of the source's partitions
    misses nothing behind `offsets`."""

    def source_of(self, place: TopicPartition) -> TopicPartition | None:
        """The source partition of a target partition; None where the ledger does not say, or where it is many."""
        topic = self.sources.get(place.topic)
        return TopicPartition(topic, place.partition) if topic and place.topic not in self.read else None

    def sources_of(self, place: TopicPartition) -> tuple[TopicPartition, ...]:
        """All source partitions of a target partition that the group had read."""
        topic = self.sources.get(place.topic, "")
        if place.topic in self.read:
            return tuple(TopicPartition(topic, number) for number in range(len(self.read[place.topic])))
        return (TopicPartition(topic, place.partition),) if topic else ()
