"""What the ledger remembers of a group's offsets: what Ferry wrote, and what of Ferry's lay there before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Wrote:
    """A source offset, and the target offset that Ferry wrote for it."""

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

    def source_of(self, place: TopicPartition) -> TopicPartition | None:
        """The source partition of a target partition; None where the ledger does not say."""
        topic = self.sources.get(place.topic)
        return TopicPartition(topic, place.partition) if topic else None
