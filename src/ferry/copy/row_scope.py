"""What of a slot's work rows are there for: all else of it is left as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ferry.errors import Refused
from ferry.model import Slice, TopicPartition

Todo = Mapping[TopicPartition, Slice]
"""What is left of slices, by `Slice.source`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScope:
    """Source offsets `[start, end)` of slices, by source partition, and whether dealt slices are in it.

    A slot of rows takes it that nothing is to be written where no row is. So it has to know where rows would be.
    """

    ranges: Mapping[TopicPartition, tuple[int, int]]
    dealt: bool

    def of(self, todo: Todo) -> dict[TopicPartition, Slice]:
        """What of it is to be done. Raises Refused for a slice that goes on before the rows begin."""
        found: dict[TopicPartition, Slice] = {}
        for place, piece in todo.items():
            if piece.dealt:
                if self.dealt:
                    found[place] = piece
                continue
            start, end = self.ranges.get(place, (0, 0))
            end = min(end, piece.end)
            if piece.start >= end:
                continue
            if piece.start < start:
                raise Refused(f"{place} goes on at offset {piece.start}, and was read from {start} on (a bug)")
            found[place] = replace(piece, end=end)
        return found
