"""Reads: how far a target partition is done with the partitions of a source topic, where it gets records of all."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import TopicPartition

Vector = tuple[int, ...]
"""An offset for each partition of a source topic, by its number: everything before it is done with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Source offsets `[starts, ends)`, by the number of the source partition.

    `epochs` are by source partition a leader epoch in which its log reached what was read of it (KIP-320); -1, or
    shorter: not known.
    """

    starts: Vector
    ends: Vector
    epochs: Vector = ()

    @property
    def start(self) -> int:
        """How much is done with before, in offsets of all partitions together: it grows with every chunk."""
        return sum(self.starts)

    @property
    def end(self) -> int:
        """The same with what is read."""
        return sum(self.ends)

    def spans(self, topic: str) -> tuple[tuple[TopicPartition, int, int], ...]:
        """The partitions of the topic, and from where to where each is read: `[start, end)`."""
        pairs = enumerate(zip(self.starts, self.ends, strict=True))
        return tuple((TopicPartition(topic, number), start, end) for number, (start, end) in pairs)
