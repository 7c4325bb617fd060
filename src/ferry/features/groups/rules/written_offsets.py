"""What the ledger keeps of a group's offsets: what Ferry wrote, and which offset of Ferry's was there before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.model import Offsets, TopicPartition


@dataclass(frozen=True, slots=True)
class Wrote:
    """A source offset, and the target offset that Ferry wrote for it.

    In repartitioned topics `source` is the sum of what the group had read of all source partitions.
    """

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Held:
    """What Ferry was last about to write on one partition, and which offset of Ferry's was there then.

    `prior` is None if none was there. It becomes None as soon as the write was seen on the target. From then on, the
    prior offset on the target is not Ferry's.
    """

    wrote: Wrote
    prior: Wrote | None = None

    def found_as(self, offset: int) -> Wrote | None:
        """Return which of the two an offset of the target is; None: another process wrote it."""
        if offset == self.wrote.target:
            return self.wrote
        return self.prior if self.prior is not None and offset == self.prior.target else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldGroup:
    """What the ledger holds of a group: its target partitions, and when all of them were last written."""

    offsets: Mapping[TopicPartition, Held]
    sources: Mapping[str, str]
    """The source topic of each target topic."""
    renewed_ms: int
    at: int = -1
    """The ledger offset of its record; -1: there is none yet."""
    read: Mapping[str, Offsets] = field(default_factory=dict)
    """Offsets of source partitions by repartitioned target topic (ADR 39): a group that has read up to them misses
    nothing after `offsets`."""

    def source_of(self, place: TopicPartition) -> TopicPartition | None:
        """Return the source partition of a target partition; None if the ledger has none, or if there are many."""
        topic = self.sources.get(place.topic)
        return TopicPartition(topic, place.partition) if topic and place.topic not in self.read else None

    def sources_of(self, place: TopicPartition) -> tuple[TopicPartition, ...]:
        """Return all source partitions of a target partition that the group had read."""
        topic = self.sources.get(place.topic, "")
        if place.topic in self.read:
            return tuple(TopicPartition(topic, number) for number in range(len(self.read[place.topic])))
        return (TopicPartition(topic, place.partition),) if topic else ()
