"""What of a slot's work rows are there for: all else of it is left as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ferry.errors import Refused
from ferry.model import Slice, TopicPartition

Todo = Mapping[TopicPartition, tuple[Slice, int, int]]
"""By source partition the slice or unit, and `(source_next, target_next)` where it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """Source offsets `[start, end)` of slices, by source partition, and whether units are in it.

    A slot of rows takes it that nothing is to be written where no row is. So it has to know where rows would be.
    """

    ranges: Mapping[TopicPartition, tuple[int, int]]
    units: bool

    def of(self, todo: Todo) -> dict[TopicPartition, tuple[Slice, int, int]]:
        """What of it is to be done. Raises Refused for a slice that goes on before the rows begin."""
        found: dict[TopicPartition, tuple[Slice, int, int]] = {}
        for place, (piece, source_next, target_next) in todo.items():
            if piece.dealt:
                if self.units:
                    found[place] = (piece, source_next, target_next)
                continue
            start, end = self.ranges.get(place, (0, 0))
            end = min(end, piece.end)
            if source_next >= end:
                continue
            if source_next < start:
                raise Refused(f"{place} goes on at offset {source_next}, and was read from {start} on (a bug)")
            found[place] = (replace(piece, end=end), source_next, target_next)
        return found
