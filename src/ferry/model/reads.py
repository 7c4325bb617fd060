"""Reads: how far a target partition has come in each partition of a source topic, when it gets records of all."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.model.flow import TopicPartition

Offsets = tuple[int, ...]
"""An offset for each partition of a source topic, by its number: everything before it is done."""


Epochs = tuple[int | None, ...]
"""A leader epoch for each partition of a source topic, by its number; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Source offsets `[starts, ends)`, by the number of the source partition.

    `epochs` are by source partition a leader epoch in which its log reached what was read of it (KIP-320); None, or
    shorter: not known.
    """

    starts: Offsets
    ends: Offsets
    epochs: Epochs = ()

    @property
    def start(self) -> int:
        """The number of offsets of all partitions together that were done before: it grows with every chunk."""
        return sum(self.starts)

    @property
    def end(self) -> int:
        """The number of offsets of all partitions together that are done after what is read."""
        return sum(self.ends)

    def spans(self, topic: str) -> tuple[tuple[TopicPartition, int, int], ...]:
        """Return the partitions of the topic, each with the `[start, end)` that is read."""
        pairs = enumerate(zip(self.starts, self.ends, strict=True))
        return tuple((TopicPartition(topic, number), start, end) for number, (start, end) in pairs)
