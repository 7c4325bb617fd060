"""The part of a slot's work for which rows were read: the rest is not touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ferry.errors import Refused
from ferry.model import Slice, TopicPartition

Todo = Mapping[TopicPartition, Slice]
"""The rests of slices, by `Slice.source`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScope:
    """Source offsets `[start, end)` of slices, by source partition, and whether repartitioned slices are included.

    A slot of rows writes nothing where it has no row. So it has to know the ranges in which all rows are present.
    """

    ranges: Mapping[TopicPartition, tuple[int, int]]
    units: bool

    def of(self, todo: Todo) -> dict[TopicPartition, Slice]:
        """Return what is to be done within the scope.

        Raises Refused for a slice that continues before the rows begin.
        """
        found: dict[TopicPartition, Slice] = {}
        for place, piece in todo.items():
            if piece.dealt:
                if self.units:
                    found[place] = piece
                continue
            start, end = self.ranges.get(place, (0, 0))
            end = min(end, piece.end)
            if piece.start >= end:
                continue
            if piece.start < start:
                raise Refused(f"{place} continues at offset {piece.start}, but was read from {start} on (a bug)")
            found[place] = replace(piece, end=end)
        return found
